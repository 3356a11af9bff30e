package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Screen describes the terminal behind an output. The zero value is a file or a pipe, to which text
// is written unchanged.
type Screen struct {
	Width, Height int  // in columns and lines; 0 = no bound
	Color         bool // it shows colours, and NO_COLOR is not set
}

// ScreenOf returns the screen behind out. Colours are off if NO_COLOR has any value
// (https://no-color.org) or TERM is dumb.
func (e *Environment) ScreenOf(out io.Writer) Screen {
	if o, ok := out.(*Output); ok {
		out = o.To
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Screen{}
	}
	s := Screen{Width: 80, Height: 24, Color: e.Lookup("NO_COLOR") == "" && e.Lookup("TERM") != "dumb"}
	if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 0 && h > 0 {
		s.Width, s.Height = w, h
	}
	return s
}

// Asks reports whether standard input is a terminal, so that a user can answer questions.
func (e *Environment) Asks() bool {
	return e.Stdin != nil && term.IsTerminal(int(e.Stdin.Fd())) && e.ScreenOf(e.Stdout).Terminal()
}

// Confirm asks a question that only "y" or "yes" answers in the affirmative.
func (e *Environment) Confirm(question string) bool {
	fmt.Fprint(e.Stdout, question+" [y/N] ")
	answer, _ := bufio.NewReader(e.Stdin).ReadString('\n') // the end of the input is a no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// Terminal reports whether the output is a terminal.
func (s Screen) Terminal() bool { return s.Width > 0 }

// Hue is a colour of a terminal. The zero value is the terminal's own.
type Hue string

// The hues, by what they mean.
const (
	Plainly Hue = ""
	Strong  Hue = "1"  // of heads
	Good    Hue = "32" // green
	Warning Hue = "33" // yellow: an operator may want to know
	Bad     Hue = "31" // red: an operator should act
	Busy    Hue = "36" // cyan: in progress
)

// Paint returns text in a hue, if the screen shows colours.
func (s Screen) Paint(h Hue, text string) string {
	if !s.Color || h == Plainly || text == "" {
		return text
	}
	return "\x1b[" + string(h) + "m" + text + "\x1b[0m"
}

// WrapHelp wraps the help of a command and its subcommands at the width of a terminal. Other output
// is not changed.
func WrapHelp(root *cobra.Command, e *Environment) {
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		screen := e.ScreenOf(e.Stdout)
		if !screen.Terminal() {
			plain(cmd, args)
			return
		}
		var text bytes.Buffer
		cmd.SetOut(&text)
		plain(cmd, args)
		cmd.SetOut(e.Stdout)
		_, _ = io.WriteString(e.Stdout, Wrap(text.String(), screen.Width)) // Output keeps the error
	})
}

// fullLine is the least length of a line that was wrapped by its author.
const fullLine = 80

// Wrap breaks the lines of a text between words, so that none is wider than width. Each continues
// below its last column. Lines of a paragraph that was wrapped at another width are joined first.
func Wrap(text string, width int) string {
	var out strings.Builder
	var lines []string
	broken := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if n := len(lines) - 1; broken && line != "" && line[0] != ' ' {
			lines[n] += " " + line
		} else {
			lines = append(lines, line)
		}
		broken = len(line) >= fullLine && line[0] != ' '
	}
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if i := strings.LastIndex(strings.TrimSpace(line), "  "); i >= 0 && indent+i+2 < width/2 {
			indent += i + 2
		}
		begin := line[:indent]
		for _, piece := range foldText(line[indent:], width-indent) {
			out.WriteString(begin + piece + "\n")
			begin = strings.Repeat(" ", indent)
		}
	}
	return out.String()
}
