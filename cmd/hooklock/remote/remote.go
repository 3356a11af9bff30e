package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin"
	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

// The variables of the environment that replace flags.
const (
	envAdmin     = "HOOKLOCK_ADMIN"
	envTokenFile = "HOOKLOCK_TOKEN_FILE"
)

// Remote holds the flags that name the admin API and the token.
type Remote struct {
	url, tokenFile, config string
	tls                    client.TLS
	output, zone           string
	more                   []string // further outputs of a command
	utc                    bool
	watch                  time.Duration // 0 = ask once
}

// The outputs of commands.
const (
	outputTable = "table"
	outputWide  = "wide" // a table with all its columns
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputCSV   = "csv" // of lists
)

var outputs = []string{outputTable, outputWide, outputJSON, outputYAML}

// errNoList is returned for -o csv of what is no list.
var errNoList = cli.Misuse(errors.New("-o csv: this is no list; use table, wide, json or yaml"))

// Flags adds the flags that all commands on the admin API share.
func (r *Remote) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	r.AddressFlags(cmd)
	f.StringVar(&r.config, "config", "", "configuration of the hooklock that is asked: its admin.listen and "+
		"data_dir are the defaults (default "+wiring.DefaultConfig+", where it is there)")
	usage := "table, wide (all columns), or json or yaml as the API has it"
	if slices.Contains(r.more, outputCSV) {
		usage += "; csv for a list, with labels, what the sender got, and trace"
	}
	f.StringVarP(&r.output, "output", "o", outputTable, usage)
	f.StringVar(&r.zone, "tz", "", "time zone of the times that are shown and given, such as Europe/Berlin "+
		"(default: Local; UTC in what goes to no terminal)")
	f.BoolVar(&r.utc, "utc", false, "the same as --tz UTC")
	completeFlag(cmd, "output", slices.Concat(outputs, r.more)...)
	NoFiles(cmd, "tz")
}

// AddressFlags adds the flags for the address of the API and for the token.
func (r *Remote) AddressFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&r.url, "admin", "", "URL of the admin listener, or its HOST:PORT, or unix:///PATH (default $"+envAdmin+
		", else "+client.DefaultURL+")")
	f.StringVar(&r.tokenFile, "token-file", "", "file with the token (default $"+envTokenFile+
		", else the token that a hooklock on this machine generated)")
	f.StringVar(&r.tls.CAFile, "ca-file", "",
		"authority that signed the admin listener's certificate (default: the system's)")
	f.StringVar(&r.tls.CertFile, "cert-file", "", "client certificate, where admin.tls asks for one")
	f.StringVar(&r.tls.KeyFile, "key-file", "", "key of the client certificate")
	NoFiles(cmd, "admin")
}

// watchFlag adds --watch to a command that reads.
func (r *Remote) watchFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVarP(&r.watch, "watch", "w", 0,
		"look again and again, every 2s or as often as --watch=5s says, until Ctrl-C")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	NoFiles(cmd, "watch")
}

// Desk is a client of an admin API with the outputs of one command.
type Desk struct {
	*client.Client
	environment *cli.Environment // its outputs are the desk's own
	url         string
	token       string // which token is sent, or why none is; part of a message
	output      string
	screen      cli.Screen
	asks        bool     // a person can answer questions
	shown       cli.Zone // of times that are shown
	given       cli.Zone // of times that flags give
	progress    *progress
}

// isRaw reports whether the output is the API's own answer.
func (d *Desk) isRaw() bool { return d.output == outputJSON || d.output == outputYAML }

// printObject prints an answer of the API, or calls people.
func (d *Desk) printObject(raw []byte, people func() error) error {
	switch d.output {
	case outputJSON:
		return cli.PrintObject(d.environment.Stdout, raw)
	case outputYAML:
		return cli.PrintYAML(d.environment.Stdout, raw)
	case outputCSV:
		return errNoList
	}
	return people()
}

// answer is an object of the API.
type answer interface{ RawJSON() []byte }

// printAnswer prints an answer, or calls people with it.
func printAnswer[T answer](d *Desk, people func(T) error) func(T, error) error {
	return func(x T, err error) error {
		if err != nil {
			return err
		}
		return d.printObject(x.RawJSON(), func() error { return people(x) })
	}
}

// printChange prints the answer to a change, or what is said of it. look is the command that shows
// whether it was made, if no answer says so.
func printChange[T answer](d *Desk, look string, said func(T) string) func(T, error) error {
	return func(x T, err error) error {
		if err != nil {
			return withDoubt(err, look)
		}
		return d.PrintResult(x.RawJSON(), said(x))
	}
}

// newTable returns an empty table for this screen. Without a head it has names and values.
func (d *Desk) newTable(head ...string) *cli.Table {
	t := &cli.Table{Out: d.environment.Stdout, Screen: d.screen, Head: head}
	if d.output == outputWide {
		t.Screen.Width = 0
	}
	return t
}

// run calls work with an open Desk and a context that Ctrl-C ends. Its errors say what to do next.
func (r *Remote) run(ctx context.Context, e *cli.Environment, work func(context.Context, *Desk) error) error {
	if all := slices.Concat(outputs, r.more); !slices.Contains(all, r.output) {
		return cli.Misuse(fmt.Errorf("-o %s: use %s", cli.Plain(r.output), strings.Join(all, ", ")))
	}
	if r.utc && r.zone != "" {
		return cli.Misuse(errors.New("--utc, --tz: give one of them"))
	}
	if r.watch != 0 && r.output == outputCSV {
		return cli.Misuse(errors.New("--watch, -o csv: give one of them"))
	}
	if r.watch < 0 || r.watch > 0 && r.watch < shortestWatch {
		return cli.Misuse(fmt.Errorf("--watch=%s: give at least %s", r.watch, shortestWatch))
	}
	d, err := r.open(e)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if r.watch > 0 {
		return d.watchOutput(ctx, r.watch, work)
	}
	return d.explainError(ctx, d.progress.runShown(ctx, "asking "+d.url, func() error { return work(ctx, d) }))
}

// Action returns the RunE of a command that calls work as run does.
func (r *Remote) Action(e *cli.Environment,
	work func(ctx context.Context, d *Desk, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error { return work(ctx, d, args) })
	}
}

// onExecution returns the RunE of a command about the one execution that its argument names.
func (r *Remote) onExecution(e *cli.Environment,
	work func(ctx context.Context, d *Desk, id string) error) func(*cobra.Command, []string) error {
	return r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
		id, err := d.completeID(ctx, args[0])
		if err != nil {
			return err
		}
		return work(ctx, d, id)
	})
}

func (r *Remote) open(e *cli.Environment) (*Desk, error) {
	d := &Desk{output: r.output, screen: e.ScreenOf(e.Stdout), asks: e.Asks(), progress: newProgress(e)}
	d.environment = &cli.Environment{Env: e.Env, Stdin: e.Stdin, Stdout: d.progress.writerBeside(e.Stdout),
		Stderr: d.progress.writerBeside(e.Stderr)}
	if err := r.setZones(d); err != nil {
		return nil, err
	}
	c, err := r.readConfig(e)
	if err != nil {
		return nil, err
	}
	address, trust := AdminURL(c), r.tls
	d.url = cmp.Or(r.url, e.Lookup(envAdmin), address)
	switch {
	case d.url == "":
		return nil, cli.Misuse(fmt.Errorf("%s: admin.listen picks its port at the start; see the log for it, and "+
			"name it with --admin", r.ConfigFile()))
	case d.url == address && trust.CAFile == "": // its own certificate is known
		own := wiring.OwnTrust(c)
		trust.CAFile, trust.ServerName = own.CAFile, own.ServerName
	}
	d.url = withScheme(d.url)
	source, err := r.tokenSource(e, d, filepath.Join(c.DataDir, admin.TokenFile))
	if err != nil {
		return nil, cli.Misuse(err)
	}
	d.Client, err = ClientAt("--admin",
		client.Options{URL: d.url, Token: source, UserAgent: "hooklock/" + cli.BuildVersion(), TLS: trust})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// ClientAt returns a client of the URL, HOST:PORT or unix:///PATH that a person has given in a
// flag, which an error names.
func ClientAt(flag string, o client.Options) (*client.Client, error) {
	o.URL = withScheme(o.URL)
	c, err := client.New(o)
	if err != nil {
		return nil, cli.Misuse(fmt.Errorf("%s %s: %w", flag, cli.Plain(withoutPassword(o.URL)), err))
	}
	return c, nil
}

// withScheme returns HOST:PORT as a URL, and a URL as it is.
func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// setZones sets the zones of d. What goes to no terminal has times as the API writes them, unless a
// zone is named.
func (r *Remote) setZones(d *Desk) (err error) {
	name := cmp.Or(r.zone, "Local")
	if r.utc {
		name = "UTC"
	}
	if d.given, err = cli.ZoneNamed(name); err != nil {
		return err
	}
	if d.screen.Terminal() || r.zone != "" {
		d.shown = d.given
	}
	return nil
}

// momentsHelp ends the help of a flag that takes a time.
const momentsHelp = `a time (02:13, "yesterday 22:00", "2026-01-31 12:00", 2026-01-31T12:00:00Z), or how long ago (10m)`

// rewriteTimes rewrites the times that flags gave as the API takes them.
func (d *Desk) rewriteTimes(times ...*string) {
	for _, t := range times {
		*t = d.given.Moment(*t, time.Now())
	}
}

// ConfigFile returns the file that --config names, or the default.
func (r *Remote) ConfigFile() string { return cmp.Or(r.config, wiring.DefaultConfig) }

// readConfig returns the configuration of the hooklock that is called: of --config, of the
// default file, or of the environment alone. A file that is not valid is read as far as possible:
// the hooklock runs with an earlier one.
func (r *Remote) readConfig(e *cli.Environment) (*config.Config, error) {
	file := r.ConfigFile()
	loaded, err := wiring.Load(e, file, nil, false)
	var problems config.Problems
	switch {
	case err == nil:
		return loaded.Config, nil
	case r.config == "" && errors.Is(err, fs.ErrNotExist):
		return config.Legible(config.Source{Env: e.Env}) // in a container the environment says where it listens
	case !errors.As(err, &problems):
		return nil, err
	}
	fmt.Fprintf(e.Stderr, "warning: %s is not valid (hooklock validate says why); where its hooklock listens is "+
		"read from it all the same\n", cli.Plain(file))
	return config.Legible(config.Source{Path: file, Env: e.Env})
}

// tokenSource returns the source of the token, and sets d.token.
func (r *Remote) tokenSource(e *cli.Environment, d *Desk, generated string) (client.TokenSource, error) {
	given, from := r.tokenFile, "--token-file"
	if given == "" {
		given, from = e.Lookup(envTokenFile), envTokenFile
	}
	if given != "" {
		source := client.TokenFile(given)
		if _, err := source(); err != nil {
			return nil, fmt.Errorf("%s: %w", from, config.WithoutSecret(given, err))
		}
		d.token = fmt.Sprintf("the token in %s (%s) was sent", given, from)
		return source, nil
	}
	if !IsLocal(d.url) {
		d.token = "no token was sent: give its file with --token-file or " + envTokenFile
		return nil, nil //nolint:nilnil // no token
	}
	source := client.TokenFile(generated)
	_, err := source()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.token = fmt.Sprintf("no token was sent: there is no %s here; give --token-file FILE (serve wrote one to "+
			"<data_dir>/admin.token), or the server's --config", generated)
	case err != nil:
		d.token = fmt.Sprintf("no token was sent: %v", err)
	default:
		d.token = fmt.Sprintf("the token in %s was sent; name another file with --token-file, or the server's "+
			"configuration with --config", generated)
		return source, nil
	}
	return nil, nil //nolint:nilnil // no token: reads may not need one
}

// AdminURL returns the URL of the admin listener, or "" if its port is picked at the start.
func AdminURL(c *config.Config) string {
	address := FromHere(c.Admin.Listen)
	if address == "" {
		return ""
	}
	if c.Admin.TLS.CertFile != "" {
		return "https://" + address
	}
	return "http://" + address
}

// FromHere returns the address of a listener of this machine, or "" if its port is picked at the
// start.
func FromHere(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return ""
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// IsLocal reports whether the generated token may be sent there: it is a secret of this machine.
func IsLocal(url string) bool {
	scheme, rest, _ := strings.Cut(url, "://")
	if scheme == "unix" {
		return true
	}
	host, _, _ := strings.Cut(rest, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// withoutPassword removes the user information, which may be a secret.
func withoutPassword(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		return scheme + "://…@" + rest[i+1:]
	}
	return url
}

// OneArg returns a check for one argument; what names it.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "" {
			return cli.Misuse(fmt.Errorf("%s takes one %s, and it is empty; see %s --help", cmd.CommandPath(), what,
				cmd.CommandPath()))
		}
		if len(args) != 1 {
			return cli.Misuse(fmt.Errorf("%s takes one %s, got %d arguments; see %s --help", cmd.CommandPath(), what,
				len(args), cmd.CommandPath()))
		}
		return nil
	}
}

// Subcommand refuses a word that is no command of this group.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Misuse(fmt.Errorf("unknown command %q for %s; %s --help lists them%s", args[0], cmd.CommandPath(),
			cmd.CommandPath(), cli.Suggestion(cmd, args[0])))
	}
	return nil
}

// addList adds the subcommand list, which is also what cmd does without a subcommand.
func addList(cmd, list *cobra.Command) {
	cmd.AddCommand(list)
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
}

// reasonFlag adds --reason, which the audit log and the record will show. With an example the
// command needs it in any case.
func reasonFlag(cmd *cobra.Command, reason *string, example string) {
	textFlag(cmd, reason, "reason", "why, for the record and the audit log (required)")
	if example != "" {
		cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return requireFlag(cmd, "reason", *reason, example) }
	}
}

// requireFlag refuses a flag that was left out.
func requireFlag(cmd *cobra.Command, flag, value, example string) error {
	if strings.TrimSpace(value) == "" {
		return cli.Misuse(fmt.Errorf("%s needs --%s, such as --%s %s", cmd.CommandPath(), flag, flag, example))
	}
	return nil
}
