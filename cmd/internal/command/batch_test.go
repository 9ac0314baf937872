package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachQuestion(t *testing.T) {
	t.Parallel()
	input := strings.Join([]string{
		`{"id":"a","text":"one","as":"ada","needle":"ignored"}`,
		``,
		`{"id":7,"text":"two","room":"ops","history":[{"speaker":"user","text":"before"}]}`,
		`{"text":"three"}`,
		`{"id":"b"}`,
		`not json`,
		`{"id":{},"text":"x"}`,
		`{"id":"c","text":"fails"}`,
		"{\"id\":\"d\",\"text\":\"\xff\"}",
		`{"id":"e","text":""}`,
		`["f"]`,
		`{"id":"g","text":5}`,
		`{"id":"h","text":"x","history":"before"}`,
		`{"id":"i","text":"x","history":[{"speaker":"user","text":{}}]}`,
	}, "\r\n")
	var got []string
	failed, err := eachQuestion(strings.NewReader(input), func(q question) error {
		if q.text == "fails" {
			return errors.New("model fault")
		}
		got = append(got, fmt.Sprintf("%s %q %s %s %v", q.id, q.text, q.as, q.room, q.history))
		return nil
	}, func(line int, err error) { got = append(got, fmt.Sprintf("line %d: %v", line, err)) },
		func(error) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a "one" ada  []`,
		`7 "two"  ops [{user before}]`,
		`4 "three"   []`,
		`line 5: it has no "text"`,
		`line 6: it is not a JSON object with id and text: invalid character 'o' in literal null (expecting 'u')`,
		`line 7: its "id" is neither text nor a number`,
		`line 8: model fault`,
		`line 9: it is not UTF-8`,
		`e ""   []`,
		`line 11: it is not a JSON object with id and text: it is of the kind array`,
		`line 12: its "text" is of the wrong kind: number`,
		`line 13: its "history" is of the wrong kind: string`,
		`line 14: its "history.text" is of the wrong kind: object`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if failed != 9 {
		t.Errorf("%d lines failed, want 9", failed)
	}
}

func TestEachQuestionLongLine(t *testing.T) {
	t.Parallel()
	input := `{"text":"` + strings.Repeat("a", maxBatchLine) + "\"}\n" + `{"text":"after"}`
	var got []string
	failed, err := eachQuestion(strings.NewReader(input), func(q question) error {
		got = append(got, q.text)
		return nil
	}, func(line int, err error) { got = append(got, err.Error()) }, func(error) bool { return false })
	if diff := cmp.Diff([]string{errLongLine.Error(), "after"}, got); diff != "" || failed != 1 || err != nil {
		t.Errorf("failed %d, %v (-want +got):\n%s", failed, err, diff)
	}
}

func TestEachQuestionStopsAtFatal(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	calls := 0
	_, err := eachQuestion(strings.NewReader("{\"text\":\"a\"}\n{\"text\":\"b\"}\n"), func(question) error {
		calls++
		return stop
	}, func(int, error) {}, func(err error) bool { return errors.Is(err, stop) })
	if calls != 1 || !errors.Is(err, stop) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func FuzzParseQuestion(f *testing.F) {
	f.Add(`{"id":"a","text":"b"}`)
	f.Add(`{"id":-1.5e9,"text":"","history":[{}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		q, err := parseQuestion([]byte(line), 3)
		if err == nil && strings.TrimSpace(q.id) == "" && !strings.Contains(line, `"id"`) {
			t.Errorf("%q has no id", line)
		}
	})
}
