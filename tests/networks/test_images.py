"""Encoders and decoders: shapes, counts of parameters, and what is shared."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nescio._validation import InputError
from nescio.networks.images import (
    DEPTHS,
    ManyMaps,
    convolutional_decoder,
    convolutional_encoder,
    dense_decoder,
    dense_encoder,
)


def count(module: nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


def gradients(module: ManyMaps, x: torch.Tensor) -> ManyMaps:
    """The module, with the gradient of its first map."""
    module(x)[0].square().sum().backward()
    return module


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 5, 7)])
def test_dense_networks_mirror_each_other(shape):
    encoder, decoder = dense_encoder(shape, 10), dense_decoder(10, shape)
    x = torch.randn(6, *shape)
    code = encoder(x)
    assert code.shape == (6, 10)
    assert decoder(code).shape == x.shape
    widths = lambda net: [(layer.in_features, layer.out_features) for layer in net if isinstance(layer, nn.Linear)]
    assert widths(decoder) == [pair[::-1] for pair in reversed(widths(encoder))]


def test_the_paper_s_dense_encoder_has_its_parameters():
    linear = 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10
    assert count(dense_encoder((1, 28, 28), 10)) == linear + 2 * (512 + 256)  # batch normalisation: two each
    assert count(dense_encoder((1, 28, 28), 10, batch_norm=False)) == linear


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 33)])
@pytest.mark.parametrize("depths", [DEPTHS, (4, 6), (5,)])
def test_convolutional_networks_mirror_each_other_at_any_size(shape, depths):
    encoder, decoder = convolutional_encoder(shape, 8, depths), convolutional_decoder(8, shape, depths)
    x = torch.randn(3, *shape)
    code = encoder(x)
    assert code.shape == (3, 8)
    assert decoder(code).shape == x.shape


def test_the_paper_s_convolutions_end_at_one_pixel():
    encoder = convolutional_encoder((3, 32, 32), 128)
    assert encoder[:-2](torch.randn(2, 3, 32, 32)).shape == (2, 512, 1, 1)
    kernels = [layer for layer in encoder if isinstance(layer, nn.Conv2d)]
    assert [layer.out_channels for layer in kernels] == list(DEPTHS)
    assert {(layer.kernel_size, layer.stride, layer.padding) for layer in kernels} == {((3, 3), (2, 2), (1, 1))}


def test_normalisation_can_be_left_out():
    nets = (
        dense_encoder((1, 8, 8), 2, (6,), batch_norm=False),
        dense_decoder(2, (1, 8, 8), (6,), batch_norm=False),
        convolutional_encoder((1, 8, 8), 2, (3, 4), batch_norm=False),
        convolutional_decoder(2, (1, 8, 8), (3, 4), batch_norm=False),
    )
    for net in nets:
        assert not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in net)


def test_maps_are_apart_unless_they_share_a_trunk():
    make = lambda: dense_decoder(2, (1, 4, 4), (8, 6))
    x = torch.randn(5, 2)
    apart, together = ManyMaps([make(), make()]), ManyMaps([make(), make()], shared_trunk=True)
    assert apart(x).shape == together(x).shape == (2, 5, 1, 4, 4)
    assert count(apart) == 2 * count(make())
    last = 8 * 16 + 16
    assert count(together) == count(make()) + last
    first = [(value.grad is None or not value.grad.any()) for value in gradients(apart, x).maps[1].parameters()]
    assert all(first)
    assert any(value.grad.any() for value in apart.maps[0].parameters())


def test_bad_shapes_are_refused():
    with pytest.raises(InputError, match="image_shape must be a whole number of at least 1"):
        dense_encoder((1, 0, 4), 3)
    with pytest.raises(InputError, match="n_latents"):
        dense_decoder(0, (1, 4, 4))
    with pytest.raises(InputError, match="at least one network"):
        ManyMaps([])
