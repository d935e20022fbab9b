#!/usr/bin/python3
"""Prints a finished training as the lines of MLPerf's loggers, from its output folder.

    scripts/mllog.py output/debian > mllog.txt
    python3 -m mlperf_logging.compliance_checker --usage training --ruleset 5.1.0 mllog.txt

Keys and order are those that the compliance checker of MLPerf Training 5.1 (PyPI: mlperf-logging) asks of its benchmark of graph
networks, rgat, in the open division, where a run may be of any model and graph. What is printed is what report.json says: it is no
submission, it clears no cache, and eval_accuracy is the validation score that the run goes by (train.metric). The checker wants at
least one below 1, so a run with no vertices to validate on does not pass.

Times are those of the files: the run starts when config.toml was written, with the graph read, and stops when report.json was. Its
epochs follow each other from the start. A run that went on from a checkpoint has the epochs that it did itself.

Needs h5py: how many vertices are trained and validated on stands in the graph file (--graph where it has moved).

Exit codes: 2 usage, 3 a file that cannot be read or is something else.
"""

import argparse
import json
import pathlib
import sys

import h5py

USUAL_METRIC = {"classes": "accuracy", "labels": "roc_auc"}
POINT, START, STOP = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


def line(milliseconds, event_type, key, value=None, metadata=None):
    event = {"namespace": "", "time_ms": round(milliseconds), "event_type": event_type, "key": key, "value": value, "metadata": metadata or {}}
    return ":::MLLOG " + json.dumps(event, separators=(",", ":"))


def facts(report, train, valid):
    """What is said of the run before it begins."""
    config = report["config"]
    batches = config["train"]["batches_per_step"]
    yield "submission_org", "none: not a submission"
    yield "submission_platform", (f"{report['ranks']} ranks, {report['replication']} copies of a block row, "
                                  f"{report['threads']} threads per rank, {report['device']}")
    yield "submission_division", "open"
    yield "submission_status", "research"
    yield "submission_benchmark", "rgat"
    yield "cache_clear", False
    yield "seed", config["train"]["seed"]
    yield "global_batch_size", config["sampler"]["batch_size"] * batches
    yield "gradient_accumulation_steps", -(-batches // report["ranks"])
    yield "train_samples", train
    yield "eval_samples", valid
    yield "opt_name", config["train"]["optimizer"]
    yield "opt_base_learning_rate", config["train"]["learning_rate"]
    yield "opt_weight_decay", config["train"]["weight_decay"]


def epoch_lines(epoch, begin, metric):
    """Those of one epoch, and when it ends."""
    seconds = epoch["seconds"]
    end = begin + 1e3 * seconds["total"]
    trained = end - 1e3 * seconds.get("evaluate", 0)
    number = {"epoch_num": epoch["epoch"]}
    lines = [line(begin, START, "epoch_start", metadata=number), line(trained, STOP, "epoch_stop", metadata=number)]
    if metric in epoch.get("valid", {}):
        lines += [line(trained, START, "eval_start", metadata=number),
                  line(end, POINT, "eval_accuracy", epoch["valid"][metric], {**number, "metric": metric}),
                  line(end, STOP, "eval_stop", metadata=number)]
    return lines, end


def run_lines(report, start, stop, train, valid):
    """`start`, `stop`: milliseconds since 1970."""
    config, restart = report["config"], report.get("restart")
    done = [epoch for epoch in report["epochs"] if restart is None or epoch["epoch"] >= restart["epoch"]]
    start = min(start, stop - 1e3 * sum(epoch["seconds"]["total"] for epoch in done))
    metric = config["train"]["metric"]
    if metric == "auto":
        metric = USUAL_METRIC[config["train"]["task"]]
    of_model = {"model": config["model"]["kind"], "graph": config["graph"]["file"]}
    for key, value in facts(report, train, valid):
        yield line(start, POINT, key, value, of_model if key == "submission_benchmark" else None)
    yield line(start, START, "init_start")
    yield line(start, STOP, "init_stop")
    yield line(start, START, "run_start", metadata=restart and {"resumed_epoch": restart["epoch"], "resumed_step": restart["step"]})
    at = start
    for epoch in done:
        lines, at = epoch_lines(epoch, at, metric)
        yield from lines
    yield line(max(at, stop), STOP, "run_stop", metadata={"status": "aborted" if "diverged" in report else "success"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="output.dir of a training that is done")
    parser.add_argument("--graph", help="the graph file, if it is not where the report says")
    options = parser.parse_args()
    report_file, config_file = options.folder / "report.json", options.folder / "config.toml"
    try:
        report = json.loads(report_file.read_text())
        if report["command"] != "train":
            raise ValueError(f"{report_file} is of espalier {report['command']}, not of a training")
        start, stop = (1e3 * file.stat().st_mtime for file in (config_file, report_file))
        with h5py.File(options.graph or report["config"]["graph"]["file"]) as graph:
            splits = graph.get(f"split/{report['graph'].get('target')}", graph["split"])
            train, valid = (len(splits[split]) for split in ("train", "valid"))
        print("\n".join(run_lines(report, start, stop, train, valid)))
    except (OSError, ValueError, KeyError) as error:
        print(f"mllog.py: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
