package plugin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/snapshot"
)

func newAudit(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Verify and search an audit log",
		Long: `Works on the folder of an audit log: the manager's volume, one log per replica, or a
copy of it. Reading needs no cluster and changes nothing.`,
		Example: examples("kubectl sharedos audit verify ./audit/log\nkubectl sharedos audit query ./audit/log --outcome denied"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerify(e), newAuditQuery(e))
	return cmd
}

// verified is what verify found, in JSON and YAML.
type verified struct {
	Dir     string `json:"dir"`
	Intact  bool   `json:"intact"`
	Records int64  `json:"records"`
	Hash    string `json:"hash,omitempty"`
	Torn    int64  `json:"tornBytes,omitempty"`
	Fault   string `json:"fault,omitempty"`
	// Seq is the first record that is damaged.
	Seq *int64 `json:"seq,omitempty"`
}

func newAuditVerify(e *env) *cobra.Command {
	var o output
	var expect string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check that no record was altered, removed, added or moved",
		Long: `Checks every record against the one before it and the end against the last
acknowledged record. Exit code 1 names the first record that is not as it was written.

A log that was rewritten as a whole is consistent with itself. Keep the last hash
elsewhere and give it with --hash to notice that, for a log that nobody appended to since.`,
		Example: examples("kubectl sharedos audit verify ./audit/log\nkubectl sharedos audit verify ./audit/log -o json"),
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			answer, err := verify(args[0], expect)
			if err != nil {
				return err
			}
			err = o.print(e.streams.Out, answer, answer.write)
			if err == nil && !answer.Intact {
				err = no()
			}
			return err
		},
	}
	cmd.Flags().StringVar(&expect, "hash", "", "hash that the last record must have, as an earlier verify printed it")
	o.addFlag(cmd)
	return cmd
}

func verify(dir, expect string) (verified, error) {
	summary, err := durable.Verify(dir)
	out := verified{Dir: dir, Intact: err == nil, Records: summary.Records, Hash: summary.Hash, Torn: summary.Torn}
	damage, ok := errors.AsType[*durable.DamageError](err)
	switch {
	case ok:
		out.Fault, out.Seq = damage.Error(), &damage.Seq
	case err != nil:
		return out, err
	case expect != "" && expect != summary.Hash:
		out.Intact, out.Fault = false, "the last record does not have the hash "+expect
	}
	return out, nil
}

func (v *verified) write(w io.Writer) error {
	if !v.Intact {
		_, err := fmt.Fprintf(w, "DAMAGED: %s\n", plain.Text(v.Fault))
		return err
	}
	_, err := fmt.Fprintf(w, "intact: %d records, the last one has the hash %s\n", v.Records, v.Hash)
	if err == nil && v.Torn > 0 {
		_, err = fmt.Fprintf(w, "an incomplete record of %d bytes at the end was never acknowledged\n", v.Torn)
	}
	return err
}

type query struct {
	env       *env
	output    output
	trace     string
	namespace string
	actor     string
	tool      string
	reason    string
	kinds     []string
	outcomes  []string
	since     string
	until     string
	last      int
}

func newAuditQuery(e *env) *cobra.Command {
	q := &query{env: e}
	cmd := &cobra.Command{
		Use:   "query DIR...",
		Short: "List the records that match",
		Long: `Lists records in order, verifying each on the way. Several folders are several
replicas' logs, one after the other. Exit code 1 means that nothing matched.`,
		Example: examples(`
kubectl sharedos audit query ./audit/log --outcome denied --last 20
kubectl sharedos audit query ./audit/log --trace 6c2f… -o json
kubectl sharedos audit query ./audit/log --actor agent:alice-assistant --since 2026-09-15T00:00:00Z`),
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return q.run(args) },
	}
	f := cmd.Flags()
	f.StringVar(&q.trace, "trace", "", "trace id of a turn")
	f.StringVar(&q.actor, "actor", "", "who acted, as kind:id")
	f.StringVar(&q.tool, "tool", "", "name of a tool")
	f.StringVar(&q.reason, "reason", "", "reason code")
	f.StringSliceVar(&q.kinds, "type", nil, "types, as in authorization.checked")
	f.StringSliceVar(&q.outcomes, "outcome", nil, "outcomes: succeeded, failed, allowed, denied, escalated")
	f.StringVar(&q.since, "since", "", "from this instant on")
	f.StringVar(&q.until, "until", "", "before this instant")
	f.IntVar(&q.last, "last", 0, "only so many of the last ones")
	complete(cmd, "outcome", fixed("succeeded", "failed", "allowed", "denied", "escalated"))
	complete(cmd, "type", fixed(
		string(audit.AuthorityResolved), string(audit.AuthorizationChecked), string(audit.EscalationRequested),
		string(audit.ResourceInvoked), string(audit.ToolInvoked), string(audit.MessageSent), string(audit.ToolCatalogListed),
		string(audit.NamespacesListed), string(audit.NamespacesUpdated), string(audit.TurnEnded),
	))
	q.output.addFlag(cmd)
	return cmd
}

func (q *query) run(dirs []string) error {
	if err := q.output.check(); err != nil {
		return err
	}
	q.namespace = *q.env.flags.Namespace
	since, err := instant("since", q.since)
	if err != nil {
		return err
	}
	until, err := instant("until", q.until)
	if err != nil {
		return err
	}
	found := []durable.Entry{}
	for _, dir := range dirs {
		for entry, err := range durable.Events(dir) {
			if err != nil {
				return err
			}
			if !q.matches(&entry.Event, since, until) {
				continue
			}
			found = append(found, entry)
			if q.last > 0 && len(found) > q.last {
				found = found[1:]
			}
		}
	}
	err = q.output.print(q.env.streams.Out, eventsOf(found), func(w io.Writer) error { return q.table(w, found) })
	if err == nil && len(found) == 0 {
		err = no()
	}
	return err
}

func eventsOf(entries []durable.Entry) []audit.Event {
	out := make([]audit.Event, len(entries))
	for i := range entries {
		out[i] = entries[i].Event
	}
	return out
}

func (q *query) matches(e *audit.Event, since, until *contract.Timestamp) bool {
	for _, pair := range [][2]string{
		{q.trace, e.TraceID}, {q.namespace, e.NamespaceID}, {q.actor, contract.CanonicalActor(e.Actor)}, {q.tool, e.Tool}, {q.reason, e.Reason},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return oneOf(q.kinds, string(e.Type)) && oneOf(q.outcomes, string(e.Outcome)) &&
		(since == nil || !e.At.Before(since.Time)) && (until == nil || e.At.Before(until.Time))
}

func oneOf(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

func (q *query) table(w io.Writer, found []durable.Entry) error {
	if len(found) == 0 {
		fmt.Fprintln(w, "no record matches")
		return nil
	}
	t := newTable(w, q.output.wide(), 4, "AT", "TYPE", "OUTCOME", "REASON", "ACTOR", "ABOUT", "GRANT", "CAUSE", "NAMESPACE", "TRACE")
	for i := range found {
		e := &found[i].Event
		t.row(e.At.UTC().Format(time.RFC3339), string(e.Type), string(e.Outcome), e.Reason, contract.CanonicalActor(e.Actor),
			aboutEvent(e), e.GrantID, e.Cause, e.NamespaceID, e.TraceID)
	}
	return t.flush()
}

// aboutEvent is what a record is about, in a few words.
func aboutEvent(e *audit.Event) string {
	parts := []string{}
	if e.Tool != "" {
		parts = append(parts, e.Tool)
	}
	if e.Resource != nil {
		parts = append(parts, e.Action+" "+snapshot.FormatResource(e.Resource.Namespace, e.Resource.Path))
	}
	return strings.Join(parts, " ")
}
