"""Where the image sets of the paper are published, in which form, and what their files' MD5 sums are."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["IMAGE_SOURCES", "ImageSource"]


class ImageSource(NamedTuple):
    """One published set of images.

    ``files`` are pairs of an address and the MD5 sum that its publishers, or torchvision for them, give for it.
    ``form`` is a name of ``nescio.datasets.image_formats``. ``train`` and ``test`` are the shapes of the images.
    """

    name: str
    about: str
    files: tuple[tuple[str, str], ...]
    form: str
    train: tuple[int, ...]
    test: tuple[int, ...]


_IDX = tuple(f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))


def _idx(folder: str, *sums: str) -> tuple[tuple[str, str], ...]:
    return tuple((folder + name, md5) for name, md5 in zip(_IDX, sums, strict=True))


_ALL = (
    ImageSource(
        "fashion_mnist", "pieces of clothing (Xiao, Rasul and Vollgraf 2017)",
        _idx(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        "idx", (60_000, 28, 28), (10_000, 28, 28),
    ),
    ImageSource(
        "mnist", "handwritten digits (LeCun, Cortes and Burges)",
        _idx(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        "idx", (60_000, 28, 28), (10_000, 28, 28),
    ),
    ImageSource(
        "kmnist", "cursive Japanese characters (Clanuwat and others 2018), the release of today",
        _idx(
            "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
            "bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344",
            "5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134",
        ),
        "idx", (60_000, 28, 28), (10_000, 28, 28),
    ),
    ImageSource(
        "emnist", "handwritten letters (Cohen and others 2017), the split of letters",
        (("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e"),),
        "emnist letters", (124_800, 28, 28), (20_800, 28, 28),
    ),
    ImageSource(
        "cifar10", "small photographs of ten kinds of things (Krizhevsky 2009)",
        (("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
        "cifar binary", (50_000, 32, 32, 3), (10_000, 32, 32, 3),
    ),
    ImageSource(
        "svhn", "house numbers (Netzer and others 2011), cropped",
        (
            ("http://ufldl.stanford.edu/housenumbers/train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("http://ufldl.stanford.edu/housenumbers/test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
        ),
        "svhn matlab", (73_257, 32, 32, 3), (26_032, 32, 32, 3),
    ),
)  # fmt: skip

IMAGE_SOURCES: dict[str, ImageSource] = {source.name: source for source in _ALL}
