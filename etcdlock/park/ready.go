package park

// ready lists the queues that are to be looked at. Its caller holds the mutex of the Index.
type ready struct {
	queues []*queue // the first to be looked at first
	// the locks that are being looked at, also those of no known queue; true: and are to be looked
	// at again
	looks map[string]bool
	some  chan struct{} // closed when queues gets its first
}

// addQueue lists a queue once. One that is being looked at is listed after that look. nil is no
// queue.
func (r *ready) addQueue(q *queue) {
	if q == nil || q.ready {
		return
	}
	if _, busy := r.looks[q.lock]; busy {
		r.looks[q.lock] = true
		return
	}
	q.ready = true
	if r.queues = append(r.queues, q); len(r.queues) == 1 {
		close(r.some)
		r.some = make(chan struct{})
	}
}

// takeNext takes the queue that was listed first. If it returns none, some is closed when there is
// one.
func (r *ready) takeNext() (q *queue, some <-chan struct{}) {
	for len(r.queues) > 0 {
		q = r.queues[0]
		r.queues[0] = nil
		if r.queues = r.queues[1:]; q.ready {
			q.ready = false
			return q, nil
		}
	}
	return nil, r.some
}

// beginLook returns false while another look is under way, and asks for one after that.
func (r *ready) beginLook(lock string) bool {
	if _, busy := r.looks[lock]; busy {
		r.looks[lock] = true
		return false
	}
	r.looks[lock] = false
	return true
}

// endLook reports whether another look was asked for meanwhile.
func (r *ready) endLook(lock string) (again bool) {
	again = r.looks[lock]
	delete(r.looks, lock)
	return again
}
