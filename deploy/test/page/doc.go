// Package page tests the page of the admin listener in a real Chromium, against a real hooklock:
// each screen, each button against a race, and what a page of somebody else's in the same browser
// can do. With PICTURES=FOLDER the screens are kept there.
package page
