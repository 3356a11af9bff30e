package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

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
		for _, piece := range fold(line[indent:], width-indent) {
			out.WriteString(begin + piece + "\n")
			begin = strings.Repeat(" ", indent)
		}
	}
	return out.String()
}
