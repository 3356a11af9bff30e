package diagnose

// Result is how a check ended.
type Result string

// The results of a check.
const (
	OK      Result = "ok"
	Warning Result = "warning" // it works, but needs attention
	Failed  Result = "failed"  // it does not work, or must not be relied on
	Skipped Result = "skipped" // it could not be checked
)

// Finding is what one check found.
type Finding struct {
	// Check names what was checked, in a few words.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Found says what was found, as a phrase.
	Found string `json:"found"`
	// Advice says what to do; "" = nothing.
	Advice string `json:"advice,omitempty"`
}
