package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/conform"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
)

// conformFlags are those of both tables.
type conformFlags struct {
	conform.Config
	report             string
	reports            reports
	json               bool
	list               bool
	costly, slow, keys bool
}

func (l *cli) conformCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "conform",
		Short: "says where an endpoint behaves unlike EC2, or unlike an instance's metadata",
		Long: `conform asks an endpoint a table of behaviours, each with the AWS document that says so, and prints the rows that differ.
It can be asked of a fake, enilab's own or anybody's, and of AWS. Each row makes what it needs and takes it away again.

Exit codes: 0 every row that was asked is as it should be, 1 some differ, 2 usage, 3 nothing could be asked, or not to the end, 130 interrupted.`,
		Example: `  enilab conform ec2 --endpoint http://127.0.0.1:4566
  enilab conform imds --endpoint http://169.254.169.254
  enilab conform ec2 --list`,
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(l.conformEC2Command(), l.conformIMDSCommand())
	return c
}

func (l *cli) conformEC2Command() *cobra.Command {
	f := &conformFlags{}
	c := &cobra.Command{
		Use:   "ec2 --endpoint URL",
		Short: "asks an EC2 endpoint (enilab serve, moto, LocalStack, AWS)",
		Long: `ec2 asks an EC2 endpoint. It needs a subnet with 64 free addresses, and for rows that attach an instance that runs; both are
looked for unless they are named. On AWS the instance has to be named: it gets interfaces, and loses them again.

Calls are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and without these with test and test; the
region is AWS_REGION's. Rows that cost money, take minutes or need an endpoint that checks keys are asked for by flag.`,
		Example: `  enilab conform ec2 --endpoint http://127.0.0.1:4566 --report ours.json
  enilab conform ec2 --endpoint http://127.0.0.1:5000 --rows 'attach.*' --rows 'detach.*'
  enilab conform ec2 --endpoint https://ec2.eu-central-1.amazonaws.com --subnet subnet-0f3 --instance i-0a1 --keys`,
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			f.AccessKey, f.Secret, f.SessionToken = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")
			f.Region = cmp.Or(f.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
			for mark, on := range map[conform.Marks]bool{conform.Costly: f.costly, conform.Slow: f.slow, conform.Keys: f.keys} {
				if on {
					f.Marks |= mark
				}
			}
			return l.conform(f, conform.EC2Rows(), conform.EC2)
		},
	}
	l.conformFlags(c, f)
	c.Flags().StringVar(&f.Region, "region", "", "the region that calls are signed for (default AWS_REGION, or us-west-2)")
	c.Flags().StringVar(&f.Subnet, "subnet", "", "the subnet to make interfaces in (default the one with the most free addresses)")
	c.Flags().StringVar(&f.Instance, "instance", "", "the instance to attach to (default one that runs; on AWS none)")
	c.Flags().StringVar(&f.Image, "image", "", "the image that --costly rows start; on AWS it has to be one that exists")
	c.Flags().BoolVar(&f.costly, "costly", false, "ask also rows that start instances: on AWS they cost money")
	c.Flags().BoolVar(&f.slow, "slow", false, "ask also rows that empty token buckets: for minutes the account is throttled")
	c.Flags().BoolVar(&f.keys, "keys", false, "ask also rows that need an endpoint that checks signatures")
	return c
}

func (l *cli) conformIMDSCommand() *cobra.Command {
	f := &conformFlags{}
	c := &cobra.Command{
		Use:   "imds --endpoint URL",
		Short: "asks an instance metadata service",
		Long:  "imds asks an instance metadata service. It only reads: nothing is made or changed.",
		Example: `  enilab conform imds --endpoint http://169.254.169.254
  enilab conform imds --endpoint http://127.0.0.1:1338 --report aemm.json`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error { return l.conform(f, conform.IMDSRows(), conform.IMDS) },
	}
	l.conformFlags(c, f)
	return c
}

func (l *cli) conformFlags(c *cobra.Command, f *conformFlags) {
	c.Flags().StringVar(&f.Endpoint, "endpoint", "", "the endpoint's URL, such as http://127.0.0.1:4566")
	c.Flags().StringArrayVar(&f.Rows, "rows", nil, "ask only rows of that name or pattern; may be repeated")
	c.Flags().StringVar(&f.report, "report", "", "write every row's outcome as JSON into that file")
	c.Flags().BoolVar(&f.json, "json", false, "print every row's outcome as JSON instead of text")
	f.reports.flags(c)
	c.Flags().BoolVar(&f.list, "list", false, "print the table, and ask nothing")
}

// conform asks a table and prints what differs.
func (l *cli) conform(f *conformFlags, rows []conform.Row, ask func(context.Context, conform.Config) (*conform.Report, error)) error {
	if f.list {
		return l.listRows(rows)
	}
	if f.Endpoint == "" {
		return usage("no endpoint: say which with --endpoint URL, such as http://127.0.0.1:4566")
	}
	if u, err := os.Stat(f.report); err == nil && u.IsDir() {
		return usage("--report %s: it is a folder: name a file", f.report)
	}
	if err := f.reports.check(nil); err != nil {
		return err
	}
	p := newProgress(l.err)
	f.Tell = func(n, of int, row *conform.Row) { p.say(fmt.Sprintf("row %d of %d: %s", n, of, row.Name)) }
	r, err := ask(l.context(), f.Config)
	p.clear()
	if errors.Is(err, conform.ErrConfig) {
		return usage("%v", err)
	}
	if r != nil && f.report != "" {
		err = errors.Join(err, put(f.report, r.Write))
	}
	if r != nil {
		err = errors.Join(err, f.reports.write(l.conformPage(r)))
	}
	var judged error
	if r != nil {
		if f.json {
			err = errors.Join(err, r.Write(l.out))
			judged = conformed(r)
		} else {
			judged = l.printReport(r)
			l.named(&f.reports)
		}
	}
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return judged
}

// printReport prints the rows that differ, why others were not asked, and the numbers.
func (l *cli) printReport(r *conform.Report) error {
	var rows [][]string
	for _, x := range r.Different() {
		found := x.Found
		for _, id := range x.Left {
			found = strings.TrimPrefix(found+"\nleft behind: "+id, "\n")
		}
		rows = append(rows, []string{x.Row.Name, x.Row.Call + ": " + x.Row.When, strings.ReplaceAll(x.Row.Want, "|", " or "), found})
	}
	if len(rows) > 0 {
		if err := table(l.out, []column{{"ROW", 24}, {"CALL AND WHEN", 30}, {"EXPECTED", 26}, {"FOUND", 34}}, rows); err != nil {
			return err
		}
		fmt.Fprintln(l.out)
	}
	why, order := map[string]int{}, []string{}
	for _, x := range r.Results {
		if x.Outcome == conform.Skipped {
			if why[x.Found]++; why[x.Found] == 1 {
				order = append(order, x.Found)
			}
		}
	}
	for _, reason := range order {
		fmt.Fprintf(l.out, "%d skipped: %s\n", why[reason], reason)
	}
	fmt.Fprintf(l.out, "%s at %s: %d rows, %d as they should be, %d differ, %d skipped, in %v\n",
		r.Table, r.Endpoint, len(r.Results), r.Count(conform.Same), r.Count(conform.Differs), r.Count(conform.Skipped), r.Took().Round(time.Second/10))
	return conformed(r)
}

// conformed is how a command ends that has asked a table.
func conformed(r *conform.Report) error {
	switch {
	case r.Interrupted:
		return ended(runner.ExitInterrupted)
	case len(r.Different()) > 0:
		return ended(runner.ExitViolated)
	case r.Count(conform.Same) == 0:
		return ended(runner.ExitLacking)
	}
	return nil
}

// conformPage is what was asked, as a report.
func (l *cli) conformPage(r *conform.Report) *report.Page {
	p := l.page("conform " + r.Table + " at " + r.Endpoint)
	for _, x := range r.Results {
		c := report.Check{Suite: "conform " + r.Table, Name: x.Row.Name, Verdict: "held", Wall: x.Took, Text: x.Row.Call + ": " + x.Row.When}
		switch {
		case x.Outcome == conform.Skipped:
			c.Verdict, c.Text = "skipped", x.Found
		case x.Outcome == conform.Differs || len(x.Left) > 0:
			c.Verdict = "violated"
			c.Text += fmt.Sprintf(": expected %s, found %s", strings.ReplaceAll(x.Row.Want, "|", " or "), x.Found)
			for _, id := range x.Left {
				c.Text += "; left behind: " + id
			}
			c.Text += " (" + x.Row.Source + ")"
		}
		p.Checks = append(p.Checks, c)
	}
	if r.Interrupted {
		p.Notes = append(p.Notes, "interrupted: the rows that are missing were not asked")
	}
	return p
}

func (l *cli) listRows(list []conform.Row) error {
	var rows [][]string
	for _, r := range list {
		name := r.Name
		if r.Marks != 0 {
			name += "\n(" + r.Marks.String() + ")"
		}
		rows = append(rows, []string{name, r.Call + ": " + r.When, strings.ReplaceAll(r.Want, "|", " or "), r.Source})
	}
	return table(l.out, []column{{"ROW", 28}, {"CALL AND WHEN", 34}, {"EXPECTED", 28}, {"SOURCE", 24}}, rows)
}
