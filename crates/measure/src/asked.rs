//! A thread that answers questions, so that whoever asks never waits longer than they want to.
//!
//! Input: questions for a server, each with a number. Output: the answer to the last of them, once it
//! is here. A server that does not answer keeps the thread, and nothing else. Answers to earlier
//! questions come too late, and are left out.

use rigel_device::clock;
use rigel_model::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Time within which a server must answer a question about its counters.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(2);

/// Longest wait for a thread that ends: it may be closing a connection.
const ENDING: Duration = Duration::from_millis(500);

/// Asks a server, in a thread of its own.
pub(crate) trait Respondent: Send + 'static {
    /// What is asked.
    type Question: Send;
    /// What it answers.
    type Answer: Send;

    /// Called first, in the thread. False if it may not answer: the thread ends.
    fn begin(&mut self) -> bool {
        true
    }

    /// Answers. May block.
    fn answer(&mut self, question: Self::Question) -> Self::Answer;

    /// Called between two questions. May block.
    fn look(&mut self);
}

/// A thread that was asked, and its answer.
pub(crate) struct AskedServer<R: Respondent> {
    /// `None` once it is to end.
    ask: Option<Sender<(u64, R::Question)>>,
    answers: Receiver<(u64, R::Answer)>,
    /// Number of the last question.
    number: u64,
    /// Number of the last question that was answered.
    answered: u64,
    /// The answer to the last question, if it is here and was not taken.
    answer: Option<R::Answer>,
    /// Since when the thread waits for the server, on the monotonic clock; zero if it does not.
    busy_since: Arc<AtomicU64>,
}

impl<R: Respondent> AskedServer<R> {
    /// Starts the thread. It looks whenever nobody has asked for `every`.
    pub(crate) fn begin(mut respondent: R, every: Duration) -> Self {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let asked = Self::with(ask, answers);
        let busy_since = Arc::clone(&asked.busy_since);
        std::thread::spawn(move || {
            let busy = |is_busy: bool| {
                let since = if is_busy {
                    clock::monotonic().0.max(1)
                } else {
                    0
                };
                busy_since.store(since, Ordering::Relaxed);
            };
            if !respondent.begin() {
                return;
            }
            loop {
                let question = questions.recv_timeout(every);
                busy(true);
                match question {
                    Ok((number, question)) => {
                        if answer.send((number, respondent.answer(question))).is_err() {
                            break;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => respondent.look(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                busy(false);
            }
            // Before the end of `answer`, which says that its connections are closed.
            drop(respondent);
            drop(answer);
        });
        asked
    }

    fn with(ask: Sender<(u64, R::Question)>, answers: Receiver<(u64, R::Answer)>) -> Self {
        Self {
            ask: Some(ask),
            answers,
            number: 0,
            answered: 0,
            answer: None,
            busy_since: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Asks; [`AskedServer::take`] has the answer once it is here.
    pub(crate) fn ask(&mut self, question: R::Question) {
        self.number += 1;
        self.answer = None;
        if let Some(ask) = &self.ask {
            // A thread that ended does not answer.
            let _ = ask.send((self.number, question));
        }
    }

    /// True while the answer to the last question is not here.
    pub(crate) fn is_pending(&mut self) -> bool {
        while let Ok(answer) = self.answers.try_recv() {
            self.note(answer);
        }
        self.answered < self.number
    }

    /// Waits for the answer to the last question, at most until `deadline` on the monotonic clock.
    pub(crate) fn wait(&mut self, deadline: Nanos) {
        while self.answered < self.number {
            let left = Duration::from_nanos(deadline.since(clock::monotonic()).0);
            match self.answers.recv_timeout(left) {
                Ok(answer) => self.note(answer),
                Err(_) => return,
            }
        }
    }

    /// The answer to the last question; `None` if it is not here, or was taken.
    pub(crate) fn take(&mut self) -> Option<R::Answer> {
        self.answer.take()
    }

    /// Since when the thread has been waiting for the server, on the monotonic clock; `None` if it
    /// does not.
    pub(crate) fn busy_since(&self) -> Option<Nanos> {
        let since = self.busy_since.load(Ordering::Relaxed);
        (since > 0).then_some(Nanos(since))
    }

    fn note(&mut self, (number, answer): (u64, R::Answer)) {
        self.answered = number;
        if number == self.number {
            self.answer = Some(answer);
        }
    }
}

impl<R: Respondent> Drop for AskedServer<R> {
    fn drop(&mut self) {
        self.ask = None;
        if self.is_pending() {
            // It may never end.
            return;
        }
        while self.answers.recv_timeout(ENDING).is_ok() {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Where the answers of a thread are sent from.
    pub(crate) type Answers<R> = Sender<(u64, <R as Respondent>::Answer)>;

    /// Asks nobody: the caller answers.
    pub(crate) fn by_hand<R: Respondent>() -> (AskedServer<R>, Answers<R>) {
        let (answer, answers) = channel();
        (AskedServer::with(channel().0, answers), answer)
    }

    /// Doubles a number once it is let go.
    struct Doubling(Receiver<()>);

    impl Respondent for Doubling {
        type Question = u64;
        type Answer = u64;

        fn answer(&mut self, question: u64) -> u64 {
            let _ = self.0.recv();
            2 * question
        }

        fn look(&mut self) {}
    }

    #[test]
    fn a_thread_that_does_not_answer_keeps_nobody() {
        let (release, gate) = channel();
        let mut asked = AskedServer::begin(Doubling(gate), Duration::from_secs(3600));
        asked.ask(1);
        asked.wait(Nanos(0));
        assert!(asked.is_pending());
        assert_eq!(asked.take(), None);
        asked.ask(2);
        release.send(()).unwrap();
        release.send(()).unwrap();
        let far = Nanos(clock::monotonic().0 + Nanos::from_secs(3600).0);
        asked.wait(far);
        assert!(!asked.is_pending());
        assert_eq!(asked.take(), Some(4));
        asked.ask(3);
        // Ends although the thread does not.
        drop(asked);
    }
}
