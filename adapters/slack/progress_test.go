package slack

import "testing"

// B-46: the answer may be there before the delivery is seen to be taken. What
// comes to show a sign then shows none, or it would stay.
func TestB46NoSignAfterTheAnswer(t *testing.T) {
	t.Parallel()
	var s marks // without an adapter: a call would panic
	s.end("key", true)
	s.start("key", question{Kind: kindRoom, Channel: "C1", TS: "1.2", Thread: "1.2"}, false)
	if len(s.m) != 0 {
		t.Error("a sign is shown for a question that was answered")
	}
}
