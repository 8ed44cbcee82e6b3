package identity

import (
	"slices"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/translate"
)

// Match returns the one Principal of a world that a Kubernetes user is. Nobody is
// matched when none claims the user, when two do, or when the Principal that does
// cannot act: one of a duplicate address, one whose authority or owner does not
// exist, or one that its controller found not ready. It is pure.
func Match(username string, world []v1alpha1.Principal) (translate.Identity, bool) {
	name, found := "", false
	for i := range world {
		if !slices.Contains(translate.Usernames(&world[i]), username) {
			continue
		}
		if found {
			return translate.Identity{}, false
		}
		name, found = world[i].Name, true
	}
	if !found {
		return translate.Identity{}, false
	}
	who, err := translate.NewDirectory(world).Identity(name)
	if err != nil || foundNotReady(who.Principal) || sharesIdentity(who.Principal, world) {
		return translate.Identity{}, false
	}
	return who, true
}

// foundNotReady reports whether the controller has looked at the Principal as it is
// now and found that it cannot act. What it has not looked at yet, as after a change
// to spec, is judged by what is asked here.
func foundNotReady(p *v1alpha1.Principal) bool {
	ready := v1alpha1.FindCondition(p.Status.Conditions, v1alpha1.PrincipalReady)
	return ready != nil && ready.ObservedGeneration == p.Generation &&
		!v1alpha1.ConditionIsCurrent(p.Status.Conditions, v1alpha1.PrincipalReady, p.Generation)
}

// sharesIdentity reports whether another Principal claims one of p's identities.
func sharesIdentity(p *v1alpha1.Principal, world []v1alpha1.Principal) bool {
	mine := translate.Usernames(p)
	for i := range world {
		if world[i].Name == p.Name {
			continue
		}
		for _, other := range translate.Usernames(&world[i]) {
			if slices.Contains(mine, other) {
				return true
			}
		}
	}
	return false
}
