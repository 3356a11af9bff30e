package idem

import "sync"

// Run takes what is parked, until Close. Lines wait for a slot beside it, so that what is carried is looked at while all are taken.
func (c *Carrier) Run() {
	var taking sync.WaitGroup
	defer taking.Wait()
	taking.Go(c.takeRipe)
	for {
		scope, route, err := c.parks.Ripe(c.life)
		if c.life.Err() != nil {
			return
		}
		c.look(scope)
		if err != nil || route != "" && c.o.Policy(route) == nil { // whoever has the route takes it; after a reload all lines are ripe again
			continue
		}
		c.mu.Lock()
		if !c.isRipe[scope] {
			c.ripe, c.isRipe[scope] = append(c.ripe, scope), true
		}
		c.mu.Unlock()
		poke(c.some)
	}
}

// takeRipe takes from ripe lines, the first first, when there is a slot.
func (c *Carrier) takeRipe() {
	for {
		select {
		case <-c.some:
		case <-c.life.Done():
			return
		}
		for c.hasRipe() {
			leave, err := c.slots.enter(c.life)
			if err != nil {
				return
			}
			c.mu.Lock()
			scope := c.ripe[0]
			c.ripe = c.ripe[1:]
			delete(c.isRipe, scope)
			c.mu.Unlock()
			c.tasks.Go(func() { c.take(scope, leave) })
		}
	}
}

func (c *Carrier) hasRipe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ripe) > 0
}

// look lets what this process carries in a line see whether somebody has changed it: a person may want it to run now.
func (c *Carrier) look(s Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.carried[lockScope(s)]; e != nil {
		poke(e.wake)
	}
}
