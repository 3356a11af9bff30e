// Package page is the page where a person looks at Hooklock and steers it: what runs now, the story of an event, what needs somebody.
//
// It is a reader of the admin API, in the same process: each screen asks the API's handler with what its visitor sent, so who may see and do what is
// decided there and nowhere else. A screen is made of sections, and is turned into HTML by the templates here; a small script puts it into the page,
// because a browser sends a token of its own accord to nobody. What changes something is a request of the API, which the script sends as it is shown
// beside the button.
//
// A new column is a line in the table's list of columns, a new section an entry in its screen's list, a new screen one in screens.
package page
