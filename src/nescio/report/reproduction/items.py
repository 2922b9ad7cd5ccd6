"""The list: every numbered figure and table of the paper in its order, and ours. A new page is one line here."""

from __future__ import annotations

from nescio.report.reproduction import gallery, image_pages, regression_pages, setting_pages, toy_pages
from nescio.report.reproduction.piece import Item

__all__ = ["GROUPS", "ITEMS", "find_items"]

TOY, REGRESSION, IMAGES, SETTING, OWN = "toy", "regression", "images", "setting", "own"
GROUPS = {
    TOY: "Toy regression",
    REGRESSION: "Regression on the UCI sets",
    IMAGES: "Models of images",
    SETTING: "Settings, data and times",
    OWN: "Not in the paper",
}

_TOY_RUNS = ("nescio.benchmark.toy_runs.fit_toy", "nescio.benchmark.desiderata.toy_desiderata")
_RAW = ("nescio.benchmark.paper_tables.raw_tables", "nescio.benchmark.paper_tables.compare")
_COUNT = ("nescio.benchmark.paper_tables.count_tables", "nescio.benchmark.statistics.win_and_draws")
_ABLATION = ("nescio.benchmark.ablation_tables.ablation_tables", "nescio.benchmark.ablations")
_DETECTION = ("nescio.benchmark.image_figures.detection_scores", "nescio.generative.detection.NoveltyDetector")
_GENERATOR = ("nescio.pseudo_inputs.descent.MixtureDescent", "nescio.benchmark.setting_tables.generator_table")

_SEPARATION = "Scores of ordinary and foreign images are clearly apart once the encoder is refitted to the foreign ones"

ITEMS: tuple[Item, ...] = (
    Item("fig:sketch", "Figure 1", "The idea", TOY,
         "Points are made where there are no data, and there the uncertainty is trained towards a prior.",
         toy_pages.sketch, ("nescio.benchmark.toy_figures.sketch_points",)),
    Item("fig:mean_regularisation", "Figure 2", "What regularising jointly costs the mean", TOY,
         "Noise contrastive priors make a better uncertainty, but flatten the mean as their weight grows.",
         toy_pages.mean_regularisation, ("nescio.benchmark.toy_figures.ncp_curves",)),
    Item("fig:pi_placement", "Figure 3", "Where pseudo-inputs belong", TOY,
         "Without pseudo-inputs, or with far ones, the std outside is arbitrary; close ones bring it to the prior, "
         "also beyond them.", toy_pages.pi_placement, ("nescio.benchmark.toy_figures.placement_curves",)),
    Item("fig:vv_pgm_regression", "Figure 4", "Graphical model of regression", TOY,
         "The target has a mean that depends on the input and a precision of its own, inferred from the input alone.",
         toy_pages.pgm_regression, ("nescio.report.reproduction.diagrams.regression_model",)),
    Item("fig:toy_result", "Figure 5", "Toy regression, all methods", TOY,
         "d-VV finds the noise, is wider outside, never too sure, and goes back to its prior; VV does not, and a shift "
         "in the data shows it.", toy_pages.toy_result, _TOY_RUNS),
    Item("fig:aleatoric_epistemic_split_toy", "Figure 6", "Aleatoric and epistemic parts", TOY,
         "The aleatoric part follows the noise; the epistemic part is even inside and grows outside.",
         toy_pages.split, _TOY_RUNS),
    Item("tab:uci", "Table 1", "Who is best on how many sets", REGRESSION,
         "d-VV is the best of its class: by the bound on 21 of 24 sets, by the divergence on 23; Bayes by backprop is "
         "a strong baseline.", regression_pages.count("uci"), _COUNT),
    Item("fig:vae_variance_plots", "Figure 7", "Variance over the plane of codes", IMAGES,
         "The variance of the d-V3AE is regular and high off the data; that of a Gaussian VAE is neither.",
         image_pages.variance_plots, ("nescio.benchmark.image_figures.latent_maps",)),
    Item("fig:re-encoding", "Figure 8", "Refitted codes of foreign images", IMAGES,
         "When the encoder is refitted to foreign images, the d-V3AE's codes leave the data, and drawn images show "
         "that it cannot make them.", image_pages.re_encoding, ("nescio.benchmark.image_figures.refit_paths",)),
    Item("fig:show_vae_samples", "Figure 9", "Drawn images", IMAGES,
         "Images drawn from the d-V3AE look better than those of a Gaussian VAE.",
         image_pages.samples, ("nescio.benchmark.image_figures.drawn_samples",)),
    Item("tab:metrics-vae", "Table 2", "Likelihood and error of drawn images", IMAGES,
         "The d-V3AE has the better drawn images on all three sets and the better likelihood on FashionMNIST.",
         image_pages.metrics,
         ("nescio.generative.measures.image_measures", "nescio.benchmark.image_tables.metrics_tables")),
    Item("fig:re_encoding_ood_detection_plots", "Figure 10", "Foreign images: MNIST", IMAGES,
         _SEPARATION + "; this beats the best method before.", image_pages.detection("mnist"), _DETECTION),
    Item("tab:boundary-samples", "Table 3", "Pseudo-inputs at the rim or far away", REGRESSION,
         "Points at the rim bring the posterior nearer to the prior than far ones, and both more than none.",
         regression_pages.boundary_samples, _ABLATION),
    Item("tab:n_steps_influence_on_pig", "Table 4", "Number of steps", REGRESSION,
         "More steps lower the bound and raise the likelihood, both by little.", regression_pages.n_steps, _ABLATION),
    Item("tab:threshold_influence_on_pig", "Table 5", "The threshold", REGRESSION,
         "The threshold of the generator matters little.", regression_pages.threshold, _ABLATION),
    Item("tab:pig-comparison", "Table 6", "Which generator", REGRESSION,
         "Walking down the density gives the best bound on 8 of 12 sets, before no walk and Gaussian noise.",
         regression_pages.pig_comparison, _ABLATION),
    Item("tab:regression_pig_parameters", "Table 7", "The generator's parameters, regression", SETTING,
         "As many points as rows, 5 steps of 0.4, tolerance 0.005.", setting_pages.regression_generator, _GENERATOR),
    Item("tab:uci_benchmarks_sources", "Table 8", "The regression sets", SETTING,
         "Twelve sets with their sizes.", setting_pages.uci_sources,
         ("nescio.benchmark.setting_tables.uci_sources_table", "nescio.datasets.uci.load_uci")),
    Item("tab:uci_not_shifted", "Table 9", "Who is best, random splits", REGRESSION,
         "The counts of Table 1 without the shifted sets.", regression_pages.count("uci_not_shifted"), _COUNT),
    Item("tab:uci_shifted", "Table 10", "Who is best, shifted splits", REGRESSION,
         "The counts of Table 1 on the shifted sets alone.", regression_pages.count("uci_shifted"), _COUNT),
    Item("tab:uci_benchmarks_elbo", "Table 11", "The bound", REGRESSION,
         "d-VV has the highest bound on nearly all sets.", regression_pages.raw("elbo"), _RAW),
    Item("tab:uci_benchmarks_log_p", "Table 12", "“log p(y|x)”", REGRESSION,
         "d-VV is near VV; Bayes by backprop leads.", regression_pages.raw("expected_log_likelihood"), _RAW),
    Item("tab:uci_benchmarks_mean_rmse", "Table 13", "Error of the mean", REGRESSION,
         "Split training keeps the mean: d-VV errs no more than VV.", regression_pages.raw("rmse"), _RAW),
    Item("tab:uci_benchmarks_variance_rmse", "Table 14", "Error of the variance", REGRESSION,
         "d-VV's variance is about as near the squared residuals as that of others.",
         regression_pages.raw("rmse_variance"), _RAW),
    Item("tab:uci_benchmarks_sample_rmse", "Table 15", "Error of a drawn value", REGRESSION,
         "Values drawn from d-VV are about as near the targets as those of VV.",
         regression_pages.raw("rmse_sample"), _RAW),
    Item("tab:uci_benchmarks_noise_kl", "Table 16", "Divergence from the prior off the data", REGRESSION,
         "Off the data d-VV is much nearer to its prior than VV.", regression_pages.raw("kl_ood_inside"), _RAW),
    Item("fig:gamma_prior", "Figure 11", "How much a prior says", TOY,
         "A heavy-tailed prior lets the data speak; one that says much holds the posterior back.",
         toy_pages.gamma_prior, ("nescio.benchmark.toy_figures.prior_curves",)),
    Item("tab:gen_mod_datasets", "Table 17", "The sets of images", SETTING,
         "Six sets with their sizes.", setting_pages.image_sources,
         ("nescio.benchmark.setting_tables.image_sources_table", "nescio.datasets.images.load_images")),
    Item("fig:vv_pgm_v3ae", "Figure 12", "Graphical model of the V3AE", IMAGES,
         "An image has a code, from which its mean and the precision of its pixels follow.",
         toy_pages.pgm_v3ae, ("nescio.report.reproduction.diagrams.v3ae_model",)),
    Item("tab:vae_pig_parameters", "Table 18", "The generator's parameters, images", SETTING,
         "As many points as images, 10 steps of 0.4, tolerance 0.007.", setting_pages.latent_generator, _GENERATOR),
    Item("fig:re_encoding_ood_detection_plots_emnist", "Figure 13", "Foreign images: EMNIST", IMAGES,
         _SEPARATION + ", here letters.",
         image_pages.detection("notmnist", "EMNIST is not at hand; shown are letters of another set, notMNIST."),
         _DETECTION),
    Item("fig:re_encoding_ood_detection_plots_kmnist", "Figure 14", "Foreign images: KMNIST", IMAGES,
         _SEPARATION + ", here Japanese characters.", image_pages.detection("kmnist_2018"), _DETECTION),
    Item("fig:entropy_pigs", "Figure 15", "Pseudo-inputs for Bernoulli models", IMAGES,
         "Trained to be undecided at pseudo-inputs, a Bernoulli model is undecided off the data.",
         image_pages.entropy,
         ("nescio.benchmark.image_figures.entropy_maps", "nescio.generative.bernoulli.BernoulliVAE")),
    Item("tab:runtime_regression", "Table 19", "Running times, regression", SETTING,
         "A fit takes from 11 seconds to half an hour.", setting_pages.regression_times,
         ("nescio.benchmark.setting_tables.regression_times_table",)),
    Item("tab:runtime_gen_models", "Table 20", "Running times, images", SETTING,
         "Pseudo-inputs add about a quarter to the time.", setting_pages.image_times,
         ("nescio.benchmark.image_tables.image_times_tables",)),
    Item("tab:runtime_gen_models_wout_pi", "Table 21", "Running times, images, no pseudo-inputs", SETTING,
         "The times without pseudo-inputs.", setting_pages.image_times_without,
         ("nescio.benchmark.image_tables.image_times_tables",)),
    Item("own:desiderata", "Table A", "The four wishes over 20 seeds", OWN, "", toy_pages.desiderata,
         (*_TOY_RUNS, "nescio.benchmark.toy_tables.desiderata_table")),
    Item("own:agreement", "Table B", "Is it their method?", OWN, "", regression_pages.agreement, _RAW),
    Item("own:sound", "Table C", "The comparison put right", OWN, "", regression_pages.sound,
         ("nescio.benchmark.sound_tables.difference_tables", "nescio.benchmark.overview.detection_table")),
    Item("own:ablations", "Table D", "Our ablations", OWN, "", regression_pages.our_ablations, _ABLATION),
    Item("own:gallery", "Figure A", "Placements in two dimensions", OWN, "", gallery.gallery,
         ("nescio.benchmark.gallery_runs.gallery_map",)),
    Item("own:descent", "Figure B", "A descent, step by step", OWN, "", gallery.descent,
         ("nescio.benchmark.gallery_runs.descent_path",)),
)  # fmt: skip
"""``tab:runtime_regression`` is our name: the paper's table has a number and no label."""


def find_items(names: list[str]) -> list[Item]:
    """The items of these labels, or all for ``all`` or no names; in the order of the list."""
    from nescio._validation import InputError, join_names

    if not names or "all" in names:
        return list(ITEMS)
    known = {key: item for item in ITEMS for key in (item.label, item.slug, item.label.split(":", 1)[1])}
    for name in names:
        if name not in known:
            raise InputError(f"'{name}' is no item; there are all, {join_names([i.label for i in ITEMS], 60)}.")
    wanted = {known[name].label for name in names}
    return [item for item in ITEMS if item.label in wanted]
