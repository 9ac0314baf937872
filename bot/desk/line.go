package desk

import "footnote/bot/ledger"

// line holds the waiting questions: one queue per room, and the rooms take
// turns.
type line struct {
	rooms  map[string][]*item
	turns  []string // rooms with waiting questions, next first
	length int
}

func newLine() line { return line{rooms: map[string][]*item{}} }

func (l *line) push(it *item) {
	if len(l.rooms[it.Room]) == 0 {
		l.turns = append(l.turns, it.Room)
	}
	l.rooms[it.Room] = append(l.rooms[it.Room], it)
	l.length++
}

// pop takes the next question, nil if none waits.
func (l *line) pop() *item {
	if len(l.turns) == 0 {
		return nil
	}
	room := l.turns[0]
	l.turns = l.turns[1:]
	waiting := l.rooms[room]
	if len(waiting) == 1 {
		delete(l.rooms, room)
	} else {
		l.rooms[room] = waiting[1:]
		l.turns = append(l.turns, room)
	}
	l.length--
	return waiting[0]
}

// remove takes a waiting question out.
func (l *line) remove(it *item) {
	waiting := l.rooms[it.Room]
	for i, w := range waiting {
		if w != it {
			continue
		}
		l.length--
		if len(waiting) > 1 {
			l.rooms[it.Room] = append(waiting[:i:i], waiting[i+1:]...)
			return
		}
		delete(l.rooms, it.Room)
		for j, room := range l.turns {
			if room == it.Room {
				l.turns = append(l.turns[:j:j], l.turns[j+1:]...)
				return
			}
		}
	}
}

// oldest is the question that has waited longest, nil if none waits.
func (l *line) oldest() *item {
	var oldest *item
	for _, waiting := range l.rooms {
		if oldest == nil || waiting[0].since.Before(oldest.since) {
			oldest = waiting[0]
		}
	}
	return oldest
}

// seats bounds what waits and runs.
type seats struct {
	limits Options
	askers map[string]int
	rooms  map[string]int
	taken  int
}

// take gives the question a seat, or says which bound it meets.
func (s *seats) take(q ledger.Delivery) Verdict {
	switch {
	case s.askers[q.Asker] >= s.limits.PerAsker:
		return BusyAsker
	case s.rooms[q.Room] >= s.limits.PerRoom:
		return BusyRoom
	case s.taken >= s.limits.Queue:
		return Busy
	}
	s.force(q)
	return Accepted
}

// force gives a seat whatever the bounds: to what was accepted before.
func (s *seats) force(q ledger.Delivery) {
	s.askers[q.Asker]++
	s.rooms[q.Room]++
	s.taken++
}

func (s *seats) leave(q ledger.Delivery) {
	less(s.askers, q.Asker)
	less(s.rooms, q.Room)
	s.taken--
}

func less(m map[string]int, k string) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}
