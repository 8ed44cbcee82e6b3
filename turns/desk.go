package turns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// FieldOwner is the field manager of the Turns made here.
const FieldOwner = "sharedos-http-api"

// apiTimeout bounds what is done for a caller who may be gone already.
const apiTimeout = 10 * time.Second

// maxText is the most characters of a payload or a state in a Turn.
const maxText = 262144

// ErrStopping means that this manager ends. The Turn goes on and is ended by the next.
var ErrStopping = errors.New("the manager is stopping; the turn goes on without it")

// errGone means that a Turn was deleted before it had ended.
var errGone = errors.New("the turn was deleted before it had ended")

// Desk creates Turns, follows them and reads how they ended.
type Desk struct {
	// Live asks the API server itself.
	Live client.Reader
	// Writer creates and cancels.
	Writer  client.Client
	Endings *Endings
	// Stopping is closed when this manager ends: a caller who is cut off then has not
	// gone away.
	Stopping <-chan struct{}
	// OnError is told what nobody else can be told. It may be nil.
	OnError func(error)
}

// stopping reports whether this manager ends.
func (d *Desk) stopping() bool {
	select {
	case <-d.Stopping:
		return true
	default:
		return false
	}
}

// nameFor is the name of the Turn for something that must happen once in its world:
// whoever comes second meets the first one's Turn. The parts are what it is once per.
func nameFor(origin string, parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash takes everything
	}
	return origin + "-" + hex.EncodeToString(sum.Sum(nil))[:40]
}

// find returns the Turn, or nil if there is none.
func (d *Desk) find(ctx context.Context, name types.NamespacedName) (*v1alpha1.Turn, error) {
	turn := &v1alpha1.Turn{}
	err := d.Live.Get(ctx, name, turn)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no Turn and no error
	}
	if err != nil {
		return nil, fmt.Errorf("get turn %q: %w", name.Name, err)
	}
	return turn, nil
}

// create makes the Turn, or returns the one that has its name already. It is not cut
// off with its caller: then nobody would know whether there is a Turn.
func (d *Desk) create(ctx context.Context, turn *v1alpha1.Turn) (made bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
	defer cancel()
	err = d.Writer.Create(ctx, turn, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		err = d.Live.Get(ctx, client.ObjectKeyFromObject(turn), turn)
		if err != nil {
			return false, fmt.Errorf("get turn %q: %w", turn.Name, err)
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create turn %q: %w", turn.Name, err)
	}
	return true, nil
}

// await waits until the Turn of that UID has ended, ctx does, or this manager.
func (d *Desk) await(ctx context.Context, ended <-chan *v1alpha1.Turn, uid types.UID) (*v1alpha1.Turn, error) {
	for {
		select {
		case turn := <-ended:
			switch {
			case turn.UID != uid: // an earlier one of the name
			case !turn.IsFinished():
				return nil, errGone
			default:
				return turn, nil
			}
		case <-d.Stopping:
			return nil, ErrStopping
		case <-ctx.Done():
			if d.stopping() {
				return nil, ErrStopping
			}
			return nil, context.Cause(ctx)
		}
	}
}

// abandon cancels the Turn for a caller who is gone and to whom nothing can be told.
func (d *Desk) abandon(ctx context.Context, turn *v1alpha1.Turn) {
	if err := d.cancel(ctx, turn); err != nil && d.OnError != nil {
		d.OnError(err)
	}
}

// cancel ends the Turn.
func (d *Desk) cancel(ctx context.Context, turn *v1alpha1.Turn) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
	defer stop()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": turn.UID}, "spec": map[string]any{"cancel": true},
	})
	if err != nil {
		return fmt.Errorf("encode the cancellation: %w", err)
	}
	named := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{Namespace: turn.Namespace, Name: turn.Name}}
	err = d.Writer.Patch(ctx, named, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cancel turn %q: %w", turn.Name, err)
	}
	return nil
}

// result reads how a Turn ended, with all of its events.
func (d *Desk) result(ctx context.Context, turn *v1alpha1.Turn) (contract.ExecutionResult, error) {
	var events []contract.ExecutionEvent
	if e := turn.Status.Events; e != nil && e.Ref != nil {
		raw, err := d.record(ctx, turn, string(e.Ref.Name), recordKey)
		if err != nil {
			return contract.ExecutionResult{}, err
		}
		if events, err = contract.UnmarshalList[contract.ExecutionEvent](raw, maxEvents); err != nil {
			return contract.ExecutionResult{}, fmt.Errorf("read the events of turn %q: %w", turn.Name, err)
		}
	}
	var output []byte
	if ref := turn.Status.OutputRef; ref != nil {
		var err error
		if output, err = d.record(ctx, turn, string(ref.Name), ref.Key); err != nil {
			return contract.ExecutionResult{}, err
		}
	}
	return translate.Execution(turn, events, output)
}

const (
	// recordKey is the key of a record's content.
	recordKey = "content"
	// maxEvents is more than the record of any Turn holds.
	maxEvents = 1 << 20
)

// record reads what is kept beside a Turn's status. It must be the Turn's own: its
// status says the name, and anybody may have made a ConfigMap of it.
func (d *Desk) record(ctx context.Context, turn *v1alpha1.Turn, name, key string) ([]byte, error) {
	object := &corev1.ConfigMap{}
	if err := d.Live.Get(ctx, types.NamespacedName{Namespace: turn.Namespace, Name: name}, object); err != nil {
		return nil, fmt.Errorf("get the record %q: %w", name, err)
	}
	if !metav1.IsControlledBy(object, turn) {
		return nil, fmt.Errorf("the record %q is not the turn's", name)
	}
	if text, ok := object.Data[key]; ok {
		return []byte(text), nil
	}
	return object.BinaryData[key], nil
}

// fits checks what a Turn holds less of than a request may.
func fits(field string, value contract.Value) error {
	if n := utf8.RuneCount(value); n > maxText {
		return fmt.Errorf("%s: has %d characters; a Turn keeps at most %d", field, n, maxText)
	}
	return nil
}

// misfit is why the API server does not take a Turn as it is, without the Turn.
func misfit(err error) (string, bool) {
	var status *apierrors.StatusError
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return "", false
	}
	causes := make([]string, 0, len(status.ErrStatus.Details.Causes))
	for _, cause := range status.ErrStatus.Details.Causes {
		causes = append(causes, strings.TrimPrefix(cause.Field, "spec.")+": "+cause.Message)
	}
	return "a Turn does not hold this: " + strings.Join(causes, "; "), true
}
