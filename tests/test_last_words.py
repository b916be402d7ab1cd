from pathlib import Path

from chapter3.last_words import last_words, where_it_stood

ABORTED = """\
[Gloo] Rank 1 is connected to 7 peer ranks. \
Expected number of connected peer ranks is : 7
[Gloo] Rank [Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected
2 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7
W1129 21:12:58.441312    2916 sync_manager.cc:147] Failed to retrieve a notice
E1129 21:12:58.441366    2916 agent.cc:288] Polled an error
Traceback (most recent call last):
  File "/home/me/train.py", line 3, in <module>
RuntimeError: no
F1129 21:12:58.441370    2916 client.h:86] Terminating process. The task died \
[type.googleapis.com/tensorflow.Error='']
=== Source Location Trace: ===
external/xla+/xla/pjrt/error_util.cc:64

*** Check failure stack trace: ***
    @     0x7f02c30f8174  absl::lts_20260526::log_internal::LogMessage::SendToLog()
Fatal Python error: Aborted

Thread 0x00007f6c43fff6c0 [watcher] (most recent call first):
  File "/usr/lib/python3.13/threading.py", line 363 in wait

Current thread 0x00007f6c9d7f7b80 (most recent call first):
  File "/x/lib/python3.13/site-packages/jax/_src/array.py", line 340 in __float__
  File "/home/me/train.py", line 9 in step
  File "/home/me/train.py", line 12 in <module>

Extension modules: numpy._core, jaxlib.cpu_feature_guard (total: 2)
"""


def test_the_reason_without_what_surrounds_it():
    assert last_words(ABORTED, Path("/home/me")).splitlines() == [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "RuntimeError: no",
        "Terminating process. The task died",
    ]


def test_errors_of_the_log_count_where_nothing_is_fatal():
    text = "E1129 21:12:58.441366    2916 a.cc:8] Failed to add port\nplain\n"
    assert last_words(text, Path("/")) == "Failed to add port\nplain"


def test_only_the_end_is_shown():
    text = "\n".join(map(str, range(100)))
    assert last_words(text, Path("/"), lines=3) == "97\n98\n99"


def test_where_the_main_thread_stood():
    assert where_it_stood(ABORTED, Path("/home/me")).splitlines() == [
        "train.py, line 12, in <module>",
        "    ",  # the code there: in this test there is no such file
        "train.py, line 9, in step",
        "    ",
    ]
    assert where_it_stood("no stacks", Path("/")) == ""


def test_a_library_is_named_where_no_own_code_is_on_the_stack():
    within = ABORTED.replace("/home/me/", "/x/lib/python3.13/site-packages/")
    found = where_it_stood(within, Path("/home/me"))
    assert found == "jax/_src/array.py, line 340, in __float__\n    "
