package page

import (
	"encoding/json"
	"net/url"
	"strings"

	"hooklock/admin/story"
)

// shellLine is a command line for copying. It keeps its words apart until they are quoted, and what
// a person types into the dialog has places of its own among them: text of a sender can neither end
// a word nor look like such a place. The script makes the text, as lineText does here.
type shellLine []shellWord

// shellWord is one argument: its pieces, one behind the other. It is left out if none of them is
// there.
type shellWord []piece

// piece is a part of a word.
type piece struct {
	Text string `json:"text,omitempty"`
	// Value names what stands here instead of Text: base (the address of the API), reason or
	// period.
	Value string `json:"value,omitempty"`
	As    string `json:"as,omitempty"` // json or url: how Value is encoded; "" = as it is
	// If names the value without which the piece is left out: period, or final (the event is never
	// to run again).
	If string `json:"if,omitempty"`
	// Syntax: the word is one of the shell's, and not quoted.
	Syntax bool `json:"syntax,omitempty"`
}

// argument is an argument of a command that may begin with a dash, and is no flag then.
type argument string

// typed is what a person has typed, by the names of piece.Value and piece.If; "" = nothing.
type typed map[string]string

var (
	theReason = piece{Value: "reason"}
	theBase   = piece{Value: "base"}
	// asFinal and until are the flags that the dialog may add.
	asFinal = shellLine{{{Text: "--final", If: "final"}}}
	until   = shellLine{{{Text: "--until", If: "period"}}, {{Value: "period", If: "period"}}}
)

// shellSyntax returns words of the shell itself.
func shellSyntax(text string) shellWord { return shellWord{{Text: text, Syntax: true}} }

// shellWords returns a line of texts, arguments, pieces, words and parts of lines.
func shellWords(args ...any) shellLine {
	var line, last shellLine
	for _, a := range args {
		switch a := a.(type) {
		case string:
			line = append(line, shellWord{{Text: a}})
		case argument:
			if word := (shellWord{{Text: string(a)}}); strings.HasPrefix(string(a), "-") {
				last = append(last, word)
			} else {
				line = append(line, word)
			}
		case piece:
			line = append(line, shellWord{a})
		case shellWord:
			line = append(line, a)
		case shellLine:
			line = append(line, a...)
		}
	}
	if len(last) > 0 {
		line = append(append(line, shellWord{{Text: "--"}}), last...)
	}
	return line
}

// hooklockCommand returns a hooklock command for the address of this page.
func hooklockCommand(args ...any) shellLine {
	return shellWords(append(append([]any{"hooklock"}, args...), "--admin", theBase)...)
}

// forEach returns a loop that does a command with each of some IDs, which is $id in it.
func forEach(ids []string, do shellLine) shellLine {
	line := shellLine{shellSyntax("for id in")}
	for _, id := range ids {
		line = append(line, shellWord{{Text: id}})
	}
	return append(append(append(line, shellSyntax("; do")), do...), shellSyntax("; done"))
}

// theID is the ID at which a loop is.
var theID = shellSyntax(`"$id"`)

// JSON returns the line for the script.
func (l shellLine) JSON() (string, error) {
	text, err := json.Marshal(l)
	return string(text), err
}

// String returns the line with a reason that is yet to be written.
func (l shellLine) String() string {
	return l.lineText(typed{"base": "http://127.0.0.1:8079/", "reason": "why"})
}

func (l shellLine) lineText(v typed) string {
	var all []string
	for _, word := range l {
		var text strings.Builder
		there, plain := false, false
		for _, p := range word {
			if p.If != "" && v[p.If] == "" {
				continue
			}
			there, plain = true, plain || p.Syntax
			text.WriteString(p.pieceText(v))
		}
		switch {
		case plain:
			all = append(all, text.String())
		case there:
			all = append(all, story.ShellWord(text.String()))
		}
	}
	return strings.Join(all, " ")
}

func (p *piece) pieceText(v typed) string {
	switch {
	case p.Value == "":
		return p.Text
	case p.As == "json":
		text, _ := json.Marshal(v[p.Value]) // of a text
		return string(text)
	case p.As == "url":
		return url.QueryEscape(v[p.Value])
	}
	return v[p.Value]
}
