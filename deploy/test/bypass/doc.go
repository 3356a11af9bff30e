// Package bypass sends the spellings of measured.md to real servers, once directly and once through
// Hooklock with a signature on the route and unmatched: pass. What runs the endpoint directly must
// not run it through Hooklock.
package bypass
