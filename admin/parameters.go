package admin

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Bounds of what a request may ask for.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxWait      = 5 * time.Minute
	maxText      = idem.MaxReason // bytes of a reason or a detail
	maxWord      = 256            // bytes of a holder, a step or a code
	maxPlan      = 200            // steps
	maxTTL       = 24 * time.Hour
)

// readPageSize returns the size of one page.
func (c *call) readPageSize() (int, error) {
	text := c.query("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, refuse("bad_request", fmt.Sprintf("limit=%s: give a number from 1 to %d", quoteText(text), maxLimit))
	}
	return n, nil
}

// parseWait reads the query parameter wait.
func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := parseDuration(text)
	if err != nil {
		return 0, refuse("bad_request", "wait: "+err.Error())
	}
	return d, checkWait(d)
}

// checkWait bounds how long a request may wait.
func checkWait(d time.Duration) error {
	if d > maxWait {
		return refuse("bad_request", fmt.Sprintf("wait: at most %v; ask again after that", maxWait))
	}
	return nil
}

// takeTTL rounds *d up to whole seconds, as etcd's leases have.
func takeTTL(d *time.Duration) error {
	if *d <= 0 || *d > maxTTL {
		return refuse("bad_request", fmt.Sprintf("ttl: give up to %v; a lock that is needed for longer is renewed",
			maxTTL))
	}
	*d = (*d + time.Second - 1).Truncate(time.Second)
	return nil
}

// readRenewal reads the hold to renew, and for how long: 0 = for as long as at first.
func readRenewal(whose func(fields) (idem.Callback, error)) (by idem.Callback, ttl time.Duration, err error) {
	by, err = whose(fields{"ttl": &ttl})
	if err == nil && ttl != 0 {
		err = takeTTL(&ttl)
	}
	return by, ttl, err
}

// checkReason checks the reason of a change, which the audit log needs.
func (c *call) checkReason(text string) error {
	c.audit.Why = cutText(text)
	if strings.TrimSpace(text) == "" {
		return refuse("bad_request", "give a reason: it goes into the audit log and into the record")
	}
	return checkText("reason", text, maxText)
}

// checkText bounds text that is stored in the ledger.
func checkText(field, text string, longest int) error {
	if len(text) > longest {
		return refuse("bad_request", fmt.Sprintf("%s is longer than %d bytes", field, longest))
	}
	if !utf8.ValidString(text) {
		return refuse("bad_request", field+" is not UTF-8")
	}
	return nil
}

// checkPrintable refuses line breaks and other control characters.
func checkPrintable(field, text string) error {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return refuse("bad_request", field+" has control characters in it")
	}
	return nil
}

// checkWord checks a name.
func checkWord(field, text string) error {
	return cmp.Or(checkPrintable(field, text), checkText(field, text, maxWord))
}

// checkWorkflow checks the name of a lock that is made here; workflows of deliveries are built from
// printable text, too.
func checkWorkflow(name string) error {
	const field = "the workflow's name"
	return cmp.Or(checkText(field, name, naming.MaxName), checkPrintable(field, name))
}
