"""The parts of scripts/scaling.py, in the order in which a study meets them: study, launch, slurm, figures, plots, page."""
