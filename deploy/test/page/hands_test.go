package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// hold takes a lock of the lock API, which the stream of the overview tells as a new row and in the
// section of the replica.
func (d *desk) hold(workflow string) {
	d.t.Helper()
	if status := d.api("POST", "/v1/locks/"+workflow+"/acquire", `{"holder":"cron","ttl":"1h"}`,
		nil); status != http.StatusCreated {
		d.t.Fatalf("acquire: %d", status)
	}
}

// mark marks a section of the screen, once it is there: what replaces it is not marked.
func (b *tab) mark(section string) {
	b.t.Helper()
	b.until(section+" is there", fmt.Sprintf(`(e => e !== null && (e.older = true))(document.querySelector(%q))`,
		section))
}

// replaced waits until something else is in the place of what was marked.
func (b *tab) replaced(section string) {
	b.t.Helper()
	b.until(section+" is another one", fmt.Sprintf(`(e => e !== null && !e.older)(document.querySelector(%q))`,
		section))
}

// as is what a person has done in a section, and finds again.
type as struct{ section, do, found string }

func (b *tab) did(all ...as) {
	b.t.Helper()
	for _, one := range all {
		b.mark(one.section)
		b.run(chromedp.Evaluate(one.do, nil))
	}
}

func (b *tab) finds(all ...as) {
	b.t.Helper()
	for _, one := range all {
		b.replaced(one.section)
		if !eval[bool](b, one.found) {
			b.t.Errorf("not found again in %s: %s", one.section, one.found)
		}
	}
}

func TestWhatAPersonHasUnfoldedTypedOrScrolledStaysSo(t *testing.T) {
	d := newDesk(t, embedded, "")
	const wide = `document.querySelector("#paused .scroll")`
	unfolded := as{"#process", `document.querySelector("#process details").open = true`,
		`document.querySelector("#process details").open`}
	scrolled := as{"#paused", wide + `.scrollLeft = 40`, wide + `.scrollLeft === 40`}
	typed := as{"#locks", `document.querySelector("#locks [name=prefix]").value = "half a na"`,
		`document.querySelector("#locks [name=prefix]").value === "half a na"`}
	pause := func(scope string) {
		if status := d.api("POST", "/v1/pauses", fmt.Sprintf(`{"scope":%q,"reason":%q}`, scope,
			strings.Repeat("x", 75)), nil); status > 299 {
			t.Fatalf("pause: %d", status)
		}
	}
	pause("route:orders")
	b := signedIn(d)
	b.run(emulation.SetDeviceMetricsOverride(800, 900, 1, false))
	b.visit(d.url, "now", "Overview")
	b.says("#paused", "route:orders")

	b.did(unfolded, scrolled, typed)
	b.run(chromedp.Evaluate(`document.querySelector("#refresh").click()`, nil))
	b.finds(unfolded, scrolled, typed)

	b.did(unfolded, scrolled)
	pause("route:waits")
	d.hold("one")
	b.says("#paused", "route:waits")
	b.finds(unfolded, scrolled)
}

// What is under a finger or selected is replaced when it is no more.
func TestNothingIsReplacedUnderAFingerOrASelection(t *testing.T) {
	d := newDesk(t, embedded, "")
	b := signedIn(d)
	b.run(emulation.SetTouchEmulationEnabled(true))
	b.visit(d.url, "now", "Overview")
	finger := func(kind input.TouchType) {
		var at []*input.TouchPoint
		if kind == input.TouchStart {
			place := eval[[]float64](b, `(e => {
				e.scrollIntoView({block: "center"});
				const at = e.getBoundingClientRect();
				return [at.x + 20, at.y + 5];
			})(document.querySelector("#process h2"))`)
			at = append(at, &input.TouchPoint{X: place[0], Y: place[1]})
		}
		b.run(input.DispatchTouchEvent(kind, at))
	}
	for _, hand := range []struct {
		name      string
		take, let func()
	}{
		{"a finger", func() { finger(input.TouchStart) }, func() { finger(input.TouchEnd) }},
		{"a selection", func() {
			b.run(chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector("#process h2"))`, nil))
		}, func() { b.run(chromedp.Evaluate(`getSelection().removeAllRanges()`, nil)) }},
	} {
		hand.take()
		b.mark("#process") // not before: what comes until then may replace it
		d.hold(strings.ReplaceAll(hand.name, " ", "-"))
		b.says("#waiting", "1 new")
		if !eval[bool](b, `document.querySelector("#process").older === true`) {
			t.Errorf("%s is on something else now", hand.name)
		}
		hand.let()
		b.replaced("#process")
	}
}
