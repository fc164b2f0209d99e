"""The console script, run in this process: exit codes, what is printed, what is saved."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from skdplda import PrivacyGuarantee, PrivateCGSLDA, ReleasedTopicModel, __version__, cli
from skdplda._demo import run_demo
from skdplda._optional import import_optional

PRICE = ["--epsilon", "8", "--delta", "1e-5"]
FRUIT, METAL = ("apple", "pear", "plum", "quince"), ("iron", "zinc", "lead", "copper")


@pytest.fixture
def corpus(tmp_path):
    """Two topics, 400 documents, one word outside the vocabulary; returns the folder."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(words, 12)) + " canary" for words in (FRUIT, METAL) for _ in range(200)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("\n".join([*FRUIT, *METAL]) + "\n", encoding="utf-8")
    return tmp_path


def run(folder, *arguments):
    """Run `skdplda fit` on the corpus with a cheap model."""
    fixed = ["--rounds", "5", "--topics", "2", "--top-words", "4", "--jobs", "1", "--output", str(folder / "out")]
    return cli.main(["fit", *PRICE, *fixed, *arguments])


def parse_error(capsys, *argv):
    """Return the single line that a usage error prints."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(argv))
    assert stopped.value.code == 2
    return one_line(capsys)


def one_line(capsys):
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "Traceback" not in err
    return err


def test_fit_prints_the_topics_and_saves_only_what_is_released(corpus, capsys):
    assert run(corpus, str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt")) == 0
    out, err = capsys.readouterr()
    topics = [line.split()[2:] for line in out.splitlines() if line.startswith("topic ")]
    topics = [[word.strip("()") for word in words] for words in topics]
    assert "Differential privacy statement" in out and "canary" not in out
    assert "400 documents" in err and "400" not in out.replace(str(corpus), "")

    folder = corpus / "out"
    assert sorted(path.name for path in folder.iterdir()) == sorted(cli.OUTPUTS)
    with np.load(folder / "topics.npz", allow_pickle=False) as saved:
        assert saved["components"].shape == (2, 8)
        assert saved["feature_names"].tolist() == [*FRUIT, *METAL]
        order = np.argsort(-saved["components"], axis=1, kind="stable")[:, :4]
        assert topics == saved["feature_names"][order].tolist()
    with open(folder / "top_words.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["topic"] for row in rows] == ["0", "1"]
    assert [[row[f"word_{i}"] for i in range(1, 5)] for row in rows] == topics
    guarantee = PrivacyGuarantee.from_json((folder / "privacy.json").read_text(encoding="utf-8"))
    expected = PrivateCGSLDA(2, epsilon=8.0, delta=1e-5, max_iter=5).privacy_cost()
    assert guarantee == expected
    assert (folder / "privacy.txt").read_text(encoding="utf-8") == f"{expected}\n"


def test_fit_refuses_to_replace_topics_before_it_spends_again(corpus, capsys, monkeypatch):
    (corpus / "out").mkdir()
    (corpus / "out" / "topics.npz").touch()
    monkeypatch.setattr(PrivateCGSLDA, "fit", lambda *_: pytest.fail("fitted"))
    assert run(corpus, str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt")) == 2
    assert "--output" in one_line(capsys)


def test_fit_without_a_public_vocabulary_is_refused_with_the_reason(corpus, capsys):
    assert run(corpus, str(corpus / "corpus.txt")) == 2
    assert "--vocabulary is needed" in (line := one_line(capsys)) and "which words occur" in line
    assert not (corpus / "out").exists()


def test_leaky_vocabulary_warns_and_the_statement_says_so(corpus, capsys):
    assert run(corpus, str(corpus / "corpus.txt"), "--leaky-vocabulary", "9", "--json") == 0
    out, err = capsys.readouterr()
    assert "skdplda: warning: --leaky-vocabulary" in err
    report = json.loads(out)
    leak = "the vocabulary: the 9 most frequent words were taken from the documents without noise"
    assert report["privacy"]["not_covered"][0] == leak
    assert sum(item.startswith("the vocabulary") for item in report["privacy"]["not_covered"]) == 1
    assert "without noise" in " ".join((corpus / "out" / "privacy.txt").read_text(encoding="utf-8").split())
    assert len(report["top_words"]) == 2 and set(report["files"]) == set(cli.OUTPUTS)


def test_words_that_may_be_noise_stand_in_parentheses(tmp_path, capsys):
    (tmp_path / "corpus.txt").write_text("apple\npear\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("apple\npear\nplum\n", encoding="utf-8")
    files = [str(tmp_path / "corpus.txt"), "--vocabulary", str(tmp_path / "words.txt")]
    assert run(tmp_path, *files, "--top-words", "3", "--epsilon", "0.1") == 0
    out = capsys.readouterr().out
    assert "(apple)" in out and "(plum)" in out and "may be noise" in out


def test_every_format_gives_the_same_counts(tmp_path):
    texts = ['apple pear, "iron"', "zinc\nzinc apple", ""]
    (tmp_path / "words.txt").write_text("Apple\niron\npear\nzinc\nzinc\n", encoding="utf-8")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    for number, text in enumerate(texts):
        (tmp_path / "folder" / "deep" / f"{number}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text("\n".join(json.dumps({"body": t}) for t in texts), encoding="utf-8")
    with open(tmp_path / "corpus.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "body"], *enumerate(texts)])
    (tmp_path / "docword.corpus.txt").write_text("3\n4\n5\n1 1 1\n1 2 1\n1 3 1\n2 1 1\n2 4 2\n", encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("apple\niron\npear\nzinc\n", encoding="utf-8")
    for name, words in {
        "folder": "words.txt",
        "corpus.jsonl": "words.txt",
        "corpus.csv": "words.txt",
        "docword.corpus.txt": "vocab.txt",
    }.items():
        argv = ["fit", *PRICE, str(tmp_path / name), "--column", "body", "--vocabulary", str(tmp_path / words)]
        X, names = cli._read_corpus(cli._parser().parse_args(argv))
        assert X.toarray().tolist() == [[1, 1, 1, 0], [1, 0, 0, 2], [0, 0, 0, 0]], name
        assert list(names) == ["apple", "iron", "pear", "zinc"]


@pytest.mark.parametrize(
    ("content", "name", "options", "named"),
    [
        ("", "empty.txt", ["--vocabulary", "words.txt"], "holds no documents"),
        ('{"text": 3}\n', "a.jsonl", ["--vocabulary", "words.txt", "--column", "text"], "line 1"),
        ("{broken\n", "a.jsonl", ["--vocabulary", "words.txt", "--column", "text"], "line 1"),
        ('{"text": "a"}\n', "a.jsonl", ["--vocabulary", "words.txt"], "--column is needed"),
        ("id,body\n1,a\n", "a.csv", ["--vocabulary", "words.txt", "--column", "text"], "--column must be one of"),
        ("1\n1\n1\n1 1 1\n", "docword.a.txt", [], "--vocabulary is needed"),
        ("apple\n", "a.txt", ["--vocabulary", "none.txt"], "none.txt"),
        ("apple\n", "a.txt", ["--vocabulary", "blank.txt"], "holds no words"),
        ("apple\n", "a.txt", ["--vocabulary", "words.txt", "--top-words", "99"], "--top-words"),
    ],
)
def test_bad_input_takes_one_line_and_names_the_parameter(corpus, capsys, monkeypatch, content, name, options, named):
    monkeypatch.chdir(corpus)
    (corpus / "blank.txt").write_text("\n", encoding="utf-8")
    (corpus / name).write_text(content, encoding="utf-8")
    assert run(corpus, name, *options) == 2
    assert named in one_line(capsys)


def test_missing_corpus_is_named(tmp_path, capsys):
    assert run(tmp_path, "nowhere.txt", "--vocabulary", "words.txt") == 2
    assert "nowhere.txt" in one_line(capsys)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ([], "demo,fit,cost"),
        (["cost"], "--epsilon"),
        (["cost", "--epsilon", "-1"], "--epsilon"),
        (["cost", "--epsilon", "nan"], "--epsilon"),
        (["cost", "--epsilon", "1", "--delta", "1"], "--delta"),
        (["cost", "--epsilon", "1", "--rounds", "0"], "--rounds"),
        (["cost", "--epsilon", "1", "--sampling-rate", "1.5"], "--sampling-rate"),
        (["cost", "--epsilon", "1", "--mechanism", "magic"], "--mechanism"),
        (["fit", "x", "--epsilon", "1", "--topics", "two"], "--topics"),
    ],
)
def test_usage_errors_take_one_line(capsys, argv, named):
    assert named in parse_error(capsys, *argv)


def test_cost_needs_delta_for_gaussian_noise_only(capsys):
    assert cli.main(["cost", "--epsilon", "1"]) == 2
    assert "--delta is needed" in one_line(capsys)
    assert cli.main(["cost", "--epsilon", "1", "--mechanism", "laplace"]) == 0
    assert cli.main(["cost", "--epsilon", "inf"]) == 0
    assert "No privacy protection" in capsys.readouterr().out


def test_cost_is_that_of_the_estimator(capsys):
    assert cli.main(["cost", *PRICE, "--rounds", "8", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    expected = PrivateCGSLDA(epsilon=8.0, delta=1e-5, max_iter=8).privacy_cost()
    assert PrivacyGuarantee.from_json(json.dumps(report["privacy"])) == expected
    noise = report["noise"]
    assert noise["first_round"] == pytest.approx(10**0.5 * noise["last_round"])
    assert 0.3 * noise["last_round"] < noise["in_model"] < noise["last_round"]
    assert noise["rounds"] == 8
    assert cli.main(["cost", *PRICE]) == 0
    assert "standard deviation" in capsys.readouterr().out


def test_cost_of_a_published_form_says_that_it_does_not_hold(capsys):
    assert cli.main(["cost", "--epsilon", "1", "--mechanism", "laplace-last"]) == 0
    out = capsys.readouterr().out
    assert "CLAIMED" in out and "standard deviation" not in out


def test_interrupted_fit_says_where_the_checkpoint_is_and_resumes(corpus, capsys, monkeypatch):
    checkpoint = corpus / "fit.ckpt"
    arguments = [str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), "--checkpoint", str(checkpoint)]
    fit = PrivateCGSLDA.fit

    def stop(report):
        if report.n_done == 3:
            raise KeyboardInterrupt

    def interrupted(self, X):
        return fit(self.set_params(callback=stop), X)

    monkeypatch.setattr(PrivateCGSLDA, "fit", interrupted)
    assert run(corpus, *arguments) == 130
    assert str(checkpoint) in capsys.readouterr().err and checkpoint.exists()
    assert not (corpus / "out" / "topics.npz").exists()

    rounds = []
    monkeypatch.setattr(
        PrivateCGSLDA, "fit", lambda self, X: fit(self.set_params(callback=lambda r: rounds.append(r.n_done)), X)
    )
    assert run(corpus, *arguments) == 0
    assert rounds == [4, 5] and not checkpoint.exists()


def test_interrupt_without_a_checkpoint(corpus, capsys, monkeypatch):
    def interrupted(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateCGSLDA, "fit", interrupted)
    assert run(corpus, str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt")) == 130
    assert "nothing was saved" in capsys.readouterr().err


def test_show_prints_the_card_of_a_released_model(tmp_path, capsys):
    model = ReleasedTopicModel([[0.9, 0.1]], ["pear", "plum"], privacy_guarantee=PrivacyGuarantee(epsilon=2.0))
    model.save(tmp_path / "pears.zip", card=False)
    for options, form in (([], "markdown"), (["--json"], "json")):
        assert cli.main(["show", str(tmp_path / "pears.zip"), *options]) == 0
        assert capsys.readouterr().out == model.card(form)
    (tmp_path / "pears.zip").write_bytes(b"PK")
    for name in ("pears.zip", "plums.zip"):
        assert cli.main(["show", str(tmp_path / name)]) == 2
        assert name in one_line(capsys)


def test_version_and_module_entry(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "skdplda", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"skdplda {__version__}\n"


def test_demo_prints_everything_and_draws(tmp_path, capsys):
    picture = run_demo(tmp_path, seed=0, n_documents=1000, n_jobs=1)
    out, err = capsys.readouterr()
    assert picture.read_bytes().startswith(b"\x89PNG") and str(picture) in out
    for part in ("held-out perplexity", "unigram", "coherence", "topics recovered", "Differential privacy statement"):
        assert part in out
    assert "--seed 0" in out and "... news articles" in err
    assert max(map(len, out.replace(str(picture), "").splitlines())) <= 120


def test_missing_optional_package_says_what_to_install():
    with pytest.raises(ImportError, match=r'The map needs nowhere_at_all.*pip install "atlas"'):
        import_optional("nowhere_at_all.maps", purpose="The map", install="atlas")
    assert import_optional("json", purpose="x", install="x") is json


def test_attack_prints_who_is_found(corpus, capsys):
    command = ["attack", str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), *PRICE]
    command += ["--topics", "2", "--rounds", "3", "--shadow-models", "4", "--directory", str(corpus / "shadows")]
    assert cli.main([*command, "--figure", str(corpus / "roc.png")]) == 0
    out = capsys.readouterr().out
    assert "LiRA online (zeta)" in out and "threshold (max)" in out and "epsilon=8" in out
    assert (corpus / "roc.png").stat().st_size > 1000
    assert len(list((corpus / "shadows").rglob("*.npz"))) == 4
    assert cli.main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["attacks"]["LiRA offline (zeta)"]) == {"auc", "tpr", "low", "high", "fpr"}
    assert report["privacy"]["epsilon"] <= 8
    assert cli.main([*command[:4], "--shadow-models", "4", "--topics", "2", "--non-private"]) == 0
    out = capsys.readouterr().out
    assert "claims" not in out and "With 200 documents outside" in out


def test_attack_refuses_before_it_begins(corpus, capsys, monkeypatch):
    monkeypatch.setattr(PrivateCGSLDA, "fit", lambda *_: pytest.fail("trained a model"))
    files = ["attack", str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), "--topics", "2"]
    assert cli.main([*files, *PRICE, "--shadow-models", "2"]) == 2
    assert "n_models must be an integer of at least 4" in one_line(capsys)
    for figure in ("nowhere/roc.png", "roc.svgz"):
        assert cli.main([*files, *PRICE, "--figure", str(corpus / figure)]) == 2
        assert "--figure" in one_line(capsys)
    assert cli.main(files) == 2
    assert "--epsilon is needed; or" in one_line(capsys)
    assert "--seed: must be an integer of at least 0; got '-1'" in parse_error(capsys, *files, *PRICE, "--seed", "-1")


def test_an_interrupted_attack_says_what_is_kept(corpus, capsys, monkeypatch):
    monkeypatch.setattr("sklearn.decomposition.LatentDirichletAllocation.fit", interrupt)
    files = ["attack", str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), "--non-private"]
    assert cli.main([*files, "--directory", str(corpus / "shadows")]) == 130
    assert f"the models trained are in {corpus / 'shadows'}" in capsys.readouterr().err


def interrupt(*_):
    raise KeyboardInterrupt


def test_audit_at_a_terminal_shows_progress_and_prints_once(corpus, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    command = ["audit", str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), *PRICE]
    assert cli.main([*command, "--topics", "2", "--rounds", "3", "--method", "repeated", "--fits", "8"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["claim", "lower", "confidence", "verdict"]
    assert "fits: 100%" in err


def test_audit_prints_claim_bound_and_verdict(corpus, capsys):
    command = ["audit", str(corpus / "corpus.txt"), "--vocabulary", str(corpus / "words.txt"), *PRICE]
    command += ["--topics", "2", "--rounds", "3", "--confidence", "0.999999"]
    assert cli.main([*command, "--canaries", "100"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["claim", "lower", "confidence", "verdict"]
    assert "consistent" in out
    assert cli.main([*command, "--method", "repeated", "--fits", "8", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["claimed_epsilon"] <= 8 and not report["violated"]
    assert cli.main([*command, "--canaries", "5"]) == 2
    assert "n_guesses" in one_line(capsys)
