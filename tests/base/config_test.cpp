// Laws: a resolved config reads back to itself; overrides win, the last one most; every wrong key
// or value is a usage error that says where, what and what would be right.
#include "espalier/base/config.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "../../src/base/config_keys.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return message_of(ExitCode::kUsage, [&] { parse_config(text, "run.toml", overrides); });
}

/// Every key has a value other than its default.
Config changed_config() {
  Config config;
  for (const auto& key : bind_keys(config)) {
    const auto other_than = [&](const std::string& word) {
      return *std::ranges::find_if(key.choices, [&](const auto& choice) { return choice != word; });
    };
    std::visit(
        [&]<class T>(T* value) {
          if constexpr (std::is_same_v<T, std::string>)
            *value = !key.choices.empty()                           ? other_than(*value)
                     : key.name.find("memory") != std::string::npos ? "8GiB"
                                                                    : "a \"quoted\\ " + key.name;
          else if constexpr (std::is_same_v<T, std::int64_t>)
            *value = key.choices.empty() ? *value + 1 : std::stoll(other_than(std::to_string(*value)));
          else if constexpr (std::is_same_v<T, double>)
            *value = *value / 2 + 0.125;
          else if constexpr (std::is_same_v<T, bool>)
            *value = !*value;
          else if constexpr (std::is_same_v<T, AutoInt>)
            value->value = value->value.value_or(2) + 1;
          else if constexpr (std::is_same_v<T, AutoNumber>)
            value->value = 0.25;
          else if constexpr (std::is_same_v<T, NumberOrWord>)
            *value = other_than(value->text);
          else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
            *value = {512, -1, 7, 2};  // of one layer more, too
          else
            *value = {"writes=3,-1", "a.cites.b=0"};
        },
        key.target);
  }
  return config;
}

TEST(Config, TheDefaultsReadBackToThemselves) {
  const auto text = to_toml(Config());
  EXPECT_EQ(to_toml(parse_config(text, "run.toml", {})), text);
  EXPECT_EQ(to_toml(parse_config("", "run.toml", {})), text) << "nothing given is everything default";
}

TEST(Config, EveryKeyIsReadAndWrittenBack) {
  const auto changed = changed_config();
  const auto text = to_toml(changed), defaults = to_toml(Config());
  const auto read = parse_saved_config(text, "again.toml").config;
  EXPECT_EQ(to_toml(read), text);
  EXPECT_EQ(to_json(read), to_json(changed));
  std::istringstream mine(text), theirs(defaults);
  for (std::string a, b; std::getline(mine, a) && std::getline(theirs, b);)
    if (!a.empty() && a[0] != '[') EXPECT_NE(a, b) << "a key that this test forgot";
}

TEST(Config, ValuesAreThoseOfTheText) {
  const auto config = parse_saved_config(R"([graph]
file = "a \"quoted\\ name.h5"
[grid]
replication = "auto"
[sampler]
fanout = [512, -1]
bulk = 3
[model]
layers = 2
[train]
learning_rate = 1e-5
seed = 123456789012345678
)",
                                         "run.toml")
                          .config;
  EXPECT_EQ(config.graph.file, "a \"quoted\\ name.h5");
  EXPECT_EQ(config.sampler.fanout, std::vector<std::int64_t>({512, -1}));
  EXPECT_TRUE(config.grid.replication.is_auto());
  EXPECT_EQ(config.sampler.bulk.value, 3);
  EXPECT_EQ(config.train.learning_rate, 1e-5);
  EXPECT_EQ(config.train.seed, 123456789012345678);
}

TEST(Config, OverridesWin) {
  const auto config =
      parse_config("[train]\nepochs = 3\n[model]\nlayers = 2\n", "run.toml",
                   {"train.epochs=5", "sampler.fanout=[3, 4]", "graph.file=x y.h5", "train.epochs=6",
                    "grid.replication=auto", "train.learning_rate=1", "model.kind=\"gcn\"",
                    "train.reproducible=true", "model.input_dropout=0.5"});
  EXPECT_EQ(config.train.epochs, 6) << "the last wins";
  EXPECT_EQ(config.sampler.fanout, std::vector<std::int64_t>({3, 4}));
  EXPECT_EQ(config.graph.file, "x y.h5");
  EXPECT_TRUE(config.grid.replication.is_auto());
  EXPECT_EQ(config.train.learning_rate, 1.0) << "a whole number is a number";
  EXPECT_EQ(config.model.kind, "gcn");
  EXPECT_TRUE(config.train.reproducible);
  EXPECT_EQ(config.model.input_dropout.value, 0.5);
}

TEST(Config, AnUnknownKeyNamesTheNearest) {
  EXPECT_EQ(message_of("[train]\n\nepoch = 3\n"),
            "run.toml:3: unknown key train.epoch; did you mean train.epochs?");
  EXPECT_NE(message_of("[sampler]\nfan_out = [1]\n").find("did you mean sampler.fanout?"), std::string::npos);
  EXPECT_NE(message_of("[model]\nhiden = 3\n").find("did you mean model.hidden?"), std::string::npos);
  EXPECT_NE(message_of("", {"gird.schedule=pull"})
                .find("command line: unknown key gird.schedule; did you mean grid.schedule?"),
            std::string::npos);
  EXPECT_NE(message_of("epochs = 3\n").find("run.toml:1: unknown key epochs; did you mean train.epochs?"),
            std::string::npos);
}

// Every answer but a sentence is a key, and no name of another system is a key's own.
TEST(Config, NamesOfOtherSystemsAreAnsweredByMeaning) {
  const std::pair<const char*, const char*> cases[] = {{"train.lr", "train.learning_rate"},
                                                       {"optimizer.LR", "train.learning_rate"},
                                                       {"model.type", "model.kind"},
                                                       {"data.num-workers", "run.threads"},
                                                       {"model.num_hidden", "model.hidden"},
                                                       {"train.fanout", "sampler.fanout"},
                                                       {"sampler.fan_out", "sampler.fanout"},
                                                       {"wd", "train.weight_decay"},
                                                       {"model.knd", "model.kind"}};
  for (const auto& [typed, meant] : cases)
    EXPECT_NE(message_of("", {typed + std::string("=1")}).find(fmt::format("did you mean {}?", meant)),
              std::string::npos)
        << typed << ": " << message_of("", {typed + std::string("=1")});
  EXPECT_NE(message_of("", {"run.nodes=4"}).find("mpirun -np N"), std::string::npos);
  std::vector<std::string> keys;
  std::istringstream lines(describe_config_keys());
  for (std::string key, rest; lines >> key && std::getline(lines, rest);) keys.push_back(key);
  for (const auto& answer : meanings_elsewhere())
    EXPECT_TRUE(answer.find(' ') != std::string::npos || std::ranges::find(keys, answer) != keys.end())
        << answer;
}

TEST(Config, TheKeyOfLogLinesIsRefusedWithWhatToWrite) {
  EXPECT_EQ(
      message_of("[output]\nmllog = true\n"),
      "run.toml:2: output.mllog was removed; scripts/mllog.py OUTPUT_DIR prints the lines of a training "
      "that is done");
  EXPECT_EQ(parse_saved_config("[output]\ndir = \"there\"\nmllog = true\n", "checkpoint").config.output.dir,
            "there");
}

TEST(Config, EveryBadValueHasItsMessage) {
  struct Case {
    const char *text, *words;
  };
  const Case cases[] = {
      {"[train]\nepochs = \"many\"\n", "run.toml:2: train.epochs must be a whole number, but is"},
      {"[train]\nepochs = 2.5\n", "train.epochs must be a whole number"},
      {"[train]\nepochs = 0\n", "train.epochs = 0 is below its least value, 1"},
      {"[train]\nlearning_rate = true\n", "train.learning_rate must be a number"},
      {"[train]\nlearning_rate = -0.1\n", "train.learning_rate = -0.1 is below its least value, 0"},
      {"[train]\nlearning_rate = nan\n", "train.learning_rate must be a finite number, but is nan"},
      {"[train]\nlearning_rate = inf\n", "train.learning_rate must be a finite number, but is inf"},
      {"[train]\nlearning_rate = \"fast\"\n", "train.learning_rate must be a number, but is 'fast'"},
      {"[train]\nepochs = 1e3\n", "train.epochs must be a whole number, but is 1000.0; write 1000"},
      {"[train]\nepochs = nan\n", "train.epochs must be a whole number, but is nan"},
      {"[train]\nepochs = -9223372036854775808\n",
       "train.epochs = -9223372036854775808 is below its least value, 1"},
      {"[train]\n\nepochs = 99999999999999999999\n", "run.toml:3: "},
      {"[train]\nepochs = 99999999999999999999\n", "is not representable in 64 bits"},
      {"[output]\ndir = \"\"\n", "run.toml:2: output.dir is empty"},
      {"[model]\nkind = \"gta\"\n", "model.kind = \"gta\": not one of sage | gcn | gat | gin"},
      {"[train]\nreproducible = 1\n", "train.reproducible must be true or false"},
      {"[train]\noptimizer = \"adma\"\n", "not one of adam | sgd; did you mean \"adam\"?"},
      {"[train]\noptimizer = 3\n", "train.optimizer must be a word in quotes"},
      {"[train]\nbatches_per_step = \"all\"\n", "train.batches_per_step must be a whole number or \"auto\""},
      {"[train]\nmomentum = 1.5\n", "train.momentum = 1.5 is above its greatest value, 1"},
      {"[model]\ndropout = 1.0\n", "model.dropout = 1 is above its greatest value"},
      {"[model]\ninput_dropout = \"some\"\n", "model.input_dropout must be a number or \"auto\""},
      {"[model]\nlayers = 2\n", "sampler.fanout has 3 entries but model.layers = 2"},
      {"[sampler]\nfanout = [15, 0, 5]\n", "sampler.fanout holds a 0"},
      {"[sampler]\nfanout = [15, -2, 5]\n", "sampler.fanout = -2 is below its least value, -1"},
      {"[sampler]\nfanout = 15\n", "sampler.fanout must be a list of whole numbers"},
      {"[sampler]\nfanout = []\n", "sampler.fanout has 0 entries but model.layers = 3"},
      {"[sampler]\nfanout = [15, \"x\", 5]\n", "sampler.fanout must be a whole number"},
      {"[sampler]\nbatch_size = 0\n", "sampler.batch_size = 0 is below"},
      {"[sampler]\nkind = \"labor\"\nshare_batches = 0\n", "sampler.share_batches = 0 is below its least"},
      {"[grid]\nreplication = 0\n", "grid.replication = 0 is below its least value, 1"},
      {"[run]\nmemory_limit = \"8 parsecs\"\n", "run.memory_limit = \"8 parsecs\" is not a size"},
      {"[run]\nmemory_limit = \"GiB\"\n", "is not a size"},
      {"[train]\nepochs = 3\nepochs = 4\n", "run.toml:3:"},
      {"[train\n", "run.toml:1:"},
  };
  for (const auto& c : cases)
    EXPECT_NE(message_of(c.text).find(c.words), std::string::npos)
        << message_of(c.text) << "\nlacks " << c.words;
}

TEST(Config, BadOverridesHaveTheirMessages) {
  EXPECT_NE(message_of("", {"train.epochs"}).find("not of the form section.key=value"), std::string::npos);
  EXPECT_NE(message_of("", {"=3"}).find("not of the form section.key=value"), std::string::npos);
  EXPECT_NE(message_of("", {"train.epochs=[3"}).find("command line: train.epochs"), std::string::npos);
  EXPECT_NE(message_of("", {"train.epochs="}).find("command line: train.epochs"), std::string::npos);
  EXPECT_NE(message_of("", {"train.epochs=three"}).find("command line: train.epochs"), std::string::npos);
}

TEST(Config, AnOverrideThatCannotBeReadIsToldWhatTheKeyTakes) {
  struct Case {
    const char *override, *words;
  };
  const Case cases[] = {
      {"train.epochs=three", "train.epochs must be a whole number, but is 'three'"},
      {"train.epochs=99999999999999999999",
       "train.epochs = 99999999999999999999 is beyond 9223372036854775807, the largest whole number"},
      {"train.seed=+99999999999999999999", "train.seed = +99999999999999999999 is beyond 92"},
      {"train.epochs=-99999999999999999999",
       "train.epochs = -99999999999999999999 is beyond -9223372036854775808, the least whole number"},
      {"train.epochs=1.5", "train.epochs must be a whole number, but is 1.5"},
      {"train.epochs=1e3", "train.epochs must be a whole number, but is 1000.0; write 1000"},
      {"train.epochs=inf", "train.epochs must be a whole number, but is inf"},
      {"train.epochs=", "train.epochs has no value; it takes a whole number"},
      {"train.epochs=  ", "train.epochs has no value; it takes a whole number"},
      {"train.learning_rate=", "train.learning_rate has no value; it takes a number"},
      {"train.learning_rate=.5", "train.learning_rate must be a number, but is '.5'; write 0.5"},
      {"train.learning_rate=1e999", "train.learning_rate must be a number, but is '1e999'"},
      {"train.learning_rate=nan", "train.learning_rate must be a finite number, but is nan"},
      {"train.batches_per_step=", "train.batches_per_step has no value; it takes a whole number or \"auto\""},
      {"train.reproducible=yes", "train.reproducible must be true or false, but is 'yes'"},
      {"sampler.fanout=15,10,5",
       "sampler.fanout must be a list of whole numbers such as [15, 10, 5], but is '15,10,5'"},
      {"sampler.fanout=[15,99999999999999999999]", "sampler.fanout"},
      {"output.dir=", "output.dir is empty"},
      {"train.optimizer=", "train.optimizer is empty"},
      {"train.epochs=3\nx = 4", "train.epochs must be a whole number, but is"},
  };
  for (const auto& c : cases)
    EXPECT_NE(message_of("", {c.override}).find(c.words), std::string::npos)
        << message_of("", {c.override}) << "\nlacks " << c.words;
  EXPECT_EQ(parse_config("", "run.toml", {"train.epochs=0x10"}).train.epochs, 16) << "TOML's hexadecimals";
  EXPECT_EQ(parse_config("", "run.toml", {"graph.file="}).graph.file, "") << "its default";
  EXPECT_EQ(parse_config("", "run.toml", {"train.learning_rate=1e308"}).train.learning_rate, 1e308);
}

// Each key that other keys can take the meaning from: a value of its own, what makes it ignored,
// what gives it a meaning.
struct Dependence {
  const char* set;
  std::vector<std::string> ignored, meant;
  const char* words;
};

std::vector<std::string> with(const std::vector<std::string>& keys, const std::string& key) {
  auto all = keys;
  all.push_back(key);
  return all;
}

TEST(Config, AKeyThatWouldBeIgnoredIsRefused) {
  const Dependence dependences[] = {
      {"train.momentum=0.5",
       {},
       {"train.optimizer=sgd"},
       "command line: train.momentum = 0.5 has no meaning with train.optimizer = \"adam\"; leave it out (its "
       "default is 0.9), or set train.optimizer to \"sgd\""},
      {"train.lr_step=7", {}, {"train.lr_schedule=step"}, "set train.lr_schedule to \"step\""},
      {"train.lr_decay=0.7",
       {"train.lr_schedule=cosine"},
       {"train.lr_schedule=step"},
       "has no meaning with train.lr_schedule = \"cosine\""},
      {"train.weight_decay_on=first",
       {},
       {"train.weight_decay=1e-4"},
       "has no meaning with train.weight_decay = 0.0; leave it out (its default is \"all\"), or set "
       "train.weight_decay to a number above 0"},
      {"train.early_stop=3", {"train.eval_every=0"}, {}, "set train.eval_every to 1 or more"},
      {"train.sparse_products=cusparse",
       {"train.reproducible=true"},
       {},
       "has no meaning with train.reproducible = true; leave it out (its default is \"own\"), or set "
       "train.reproducible to false"},
      {"grid.schedule=push",
       {"grid.topology=replicated"},
       {},
       "has no meaning with grid.topology = \"replicated\""},
      {"model.hidden=8", {"model.layers=1", "sampler.fanout=[3]"}, {}, "set model.layers to 2 or more"},
      {"model.normalize=batch",
       {"model.layers=1", "sampler.fanout=[3]"},
       {},
       "set model.layers to 2 or more"},
  };
  for (const auto& d : dependences) {
    EXPECT_NE(message_of("", with(d.ignored, d.set)).find(d.words), std::string::npos)
        << message_of("", with(d.ignored, d.set)) << "\nlacks " << d.words;
    EXPECT_EQ(message_of("", with(d.meant, d.set)), "") << d.set;
  }
  EXPECT_NE(message_of("[train]\n\nmomentum = 0.5\n").find("run.toml:3: train.momentum"), std::string::npos);
  EXPECT_EQ(message_of("[train]\nmomentum = 0.9\nlr_step = 30\n"), "") << "defaults mean nothing more";
  EXPECT_EQ(message_of("[train]\nmomentum = 0.5\n", {"train.momentum=0.9"}), "") << "the last wins";
}

TEST(Config, ASavedConfigMayHoldWhatIsRefusedToday) {
  const auto saved = parse_saved_config("[train]\nmomentum = 0.5\n", "checkpoint.h5").config;
  EXPECT_EQ(saved.train.momentum, 0.5);
  EXPECT_TRUE(differing_keys(saved, Config()).empty()) << "a key without meaning makes no other job";
  auto sgd = saved;
  sgd.train.optimizer = "sgd";
  EXPECT_EQ(differing_keys(saved, sgd).size(), 1u);
  auto other = sgd;
  other.train.momentum = 0.6;
  EXPECT_EQ(differing_keys(sgd, other).size(), 1u);
}

TEST(Config, WhatWasRemovedIsRefusedWithWhatToWrite) {
  EXPECT_EQ(
      message_of("[history]\nkind = \"variate\"\n"),
      "run.toml:2: history.kind = \"variate\" was removed; raise sampler.fanout, which gives more, with "
      "\"none\" or \"replace\" (docs/decisions/026)");
  EXPECT_NE(
      message_of("", {"history.kind=variate"}).find("command line: history.kind = \"variate\" was removed"),
      std::string::npos);
  EXPECT_EQ(
      message_of("[history]\nadmit = \"all\"\n"),
      "run.toml:2: history.admit was removed; leave it out: rows are kept whether a minibatch awaits them "
      "or not");
  for (const auto* const removed : {"variate", "history.admit", "history.memory"})
    EXPECT_EQ(describe_config_keys().find(removed), std::string::npos) << removed;
  // Whatever they are given, their defaults too.
  const std::pair<const char*, const char*> keys[] = {
      {"graph.share_features=true", "graph.features_on = \"node\""},
      {"grid.latency_us=2", "grid.schedule"},
      {"grid.bandwidth_gbs=10", "grid.schedule"},
      {"sampler.batches=local", "as many groups as there were (64, where none were given)"},
      {"history.memory=1MiB", "write run.cache_memory"},
      {"history.feature_rows=degree", "write run.cache_policy"},
      {"history.lag=0", "two steps before"},
      {"history.layers=[1]", "all hidden layers"},
      {"history.saved=false", "checkpoints hold the cache"},
      {"history.audit=true", "leave it out"},
      {"run.exchange_rounds=one", "in rounds"}};
  for (const auto& [key, instead] : keys) {
    const auto name = std::string(key).substr(0, std::string(key).find('='));
    EXPECT_NE(message_of("", {key}).find("command line: " + name + " was removed; "), std::string::npos)
        << message_of("", {key});
    EXPECT_NE(message_of("", {key}).find(instead), std::string::npos) << message_of("", {key});
    EXPECT_EQ(describe_config_keys().find("  " + name + " "), std::string::npos) << name;
  }
}

// A restart is told what it cannot go on with; an inference needs none of it.
TEST(Config, ASavedConfigMayHoldWhatWasRemoved) {
  const auto read = [](const std::string& text) { return parse_saved_config(text, "checkpoint.h5"); };
  EXPECT_EQ(read("[history]\nkind = \"variate\"\n").removed, "history.kind = \"variate\"");
  EXPECT_EQ(read("[history]\nkind = \"replace\"\nlag = 0\n").removed, "history.lag = 0");
  EXPECT_EQ(read("[history]\nkind = \"replace\"\nlayers = [1]\n").removed, "history.layers = [ 1 ]");
  EXPECT_EQ(read("[history]\nkind = \"replace\"\nlag = 0\n").config.history.kind, "replace");
  EXPECT_EQ(read(to_toml(changed_config())).removed, "");
  for (const auto* const saved :
       {"[history]\nadmit = \"awaited\"\nmemory = \"1MiB\"\nfeature_rows = \"auto\"\n",
        "[history]\nlag = 1\nlayers = []\nsaved = true\naudit = false\n",
        "[history]\nkind = \"replace\"\nsaved = false\naudit = true\n", "[graph]\nshare_features = true\n",
        "[grid]\nlatency_us = 2.0\nbandwidth_gbs = 25.0\n[run]\nexchange_rounds = \"one\"\n"})
    EXPECT_EQ(read(saved).removed, "") << saved;
}

TEST(Config, ASavedConfigSaysHowManyGroupsThereWere) {
  const auto groups = [](const std::string& keys) {
    const auto saved = parse_saved_config("[sampler]\n" + keys, "checkpoint.h5");
    EXPECT_EQ(saved.removed, "");
    return saved.config.sampler.groups;
  };
  EXPECT_EQ(groups("batches = \"uniform\"\ngroups = 64\n"), 0);
  EXPECT_EQ(groups("batches = \"local\"\ngroups = 64\n"), 64);
  EXPECT_EQ(groups("groups = 12\nbatches = \"local\"\n"), 12);
  EXPECT_EQ(groups("groups = 12\n"), 12);
  EXPECT_EQ(groups(""), 0);
}

TEST(Config, ADifferenceSaysWhatItChanges) {
  const Config there;
  for (const auto& [text, effect] :
       std::vector<std::pair<const char*, KeyEffect>>{{"model.embedding=4", KeyEffect::kShape},
                                                      {"graph.feature_norm=row", KeyEffect::kMeaning},
                                                      {"sampler.relation_fanout=[\"a=0\"]", KeyEffect::kDraw},
                                                      {"train.optimizer=sgd", KeyEffect::kState},
                                                      {"train.seed=1", KeyEffect::kBatches},
                                                      {"train.learning_rate=0.5", KeyEffect::kTrajectory},
                                                      {"run.threads=7", KeyEffect::kCost}}) {
    const auto differences = differing_keys(there, parse_config("", "run.toml", {text}));
    ASSERT_EQ(differences.size(), 1u) << text;
    EXPECT_EQ(differences[0].effect, effect) << text;
  }
}

TEST(Config, OneKeyOfAnotherConfig) {
  const auto other = changed_config();
  for (const auto& key : differing_keys(Config(), other)) {
    const auto mixed = with_key_of(Config(), key.name, other);
    const auto changed = differing_keys(Config(), mixed);
    EXPECT_LE(changed.size(), 1u) << key.name;  // none: it has no meaning alone
    EXPECT_NE(to_toml(mixed), to_toml(Config())) << key.name;
  }
}

TEST(Config, WhatWasAskedForWithWhatItBecame) {
  Config asked;
  auto resolved = asked;
  resolved.run.threads.value = 3;
  resolved.graph.target = "paper";
  const auto text = to_toml(asked, resolved);
  EXPECT_NE(text.find("threads = \"auto\"  # 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("target = \"\"  # \"paper\"\n"), std::string::npos) << text;
  EXPECT_EQ(to_toml(parse_config(text, "config.toml", {})), to_toml(asked));
  EXPECT_EQ(to_toml(asked, asked), to_toml(asked));
}

TEST(Config, Sizes) {
  EXPECT_EQ(parse_bytes("8GiB", "x"), std::int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("500MB", "x"), 500000000);
  EXPECT_EQ(parse_bytes("1e9", "x"), 1000000000);
  EXPECT_EQ(parse_bytes("1.5KiB", "x"), 1536);
  for (const char* bad : {"", "x", "-1GB", "0", "1e30", "5 GB", "5gb", "nan", "inf"})
    EXPECT_THROW(parse_bytes(bad, "x"), UserError) << bad;
  EXPECT_NE(message_of("", {"run.memory_limit=99999999999999999999GB"}).find("from 1 byte to 9e+18 bytes"),
            std::string::npos);
}

// Every value that a key can have stands in what is said of it.
TEST(Config, EveryChoiceIsDescribed) {
  Config config;
  const auto text = "\n" + describe_config_keys();
  for (const auto& key : bind_keys(config)) {
    const auto begin = text.find("\n  " + key.name + " ");
    const auto line = text.substr(begin, text.find('\n', begin + 1) - begin);
    for (const auto& choice : key.choices)
      EXPECT_NE(line.find(choice), std::string::npos) << key.name << " = " << choice;
  }
}

TEST(Config, EveryKeyIsDescribed) {
  const auto text = describe_config_keys();
  for (const char* key : {"graph.file", "sampler.fanout", "run.restart", "output.dir"})
    EXPECT_NE(text.find(key), std::string::npos);
  for (const auto effect : {KeyEffect::kShape, KeyEffect::kMeaning, KeyEffect::kDraw, KeyEffect::kState,
                            KeyEffect::kBatches, KeyEffect::kTrajectory, KeyEffect::kCost})
    EXPECT_NE(text.find(fmt::format(" {} ", name_of(effect))), std::string::npos) << name_of(effect);
}

}  // namespace
}  // namespace espalier
