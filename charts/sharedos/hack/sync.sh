#!/usr/bin/env bash
# Keeps what is written twice the same:
#   config/crd, config/rbac/role.yaml  ->  charts/sharedos/files   (copies)
#   charts/sharedos                    ->  config/{rbac,manager,webhook}   (rendered)
# `make manifests` runs it after controller-gen; `make verify` fails when it was not.
# HELM names the helm binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
helm=${HELM:-helm}
chart=charts/sharedos
namespace=sharedos-system

rm -rf "$chart/files/crds"
mkdir -p "$chart/files/crds"
if [ -d config/crd ]; then
	find config/crd -name 'sharedos.dev_*.yaml' -exec cp {} "$chart/files/crds/" \;
fi
cp config/rbac/role.yaml "$chart/files/manager-role.yaml"

# render TARGET TEMPLATE... writes the templates' objects with the default values,
# without the labels that only Helm needs.
render() {
	local target=$1 template
	shift
	local args=()
	for template; do
		args+=(--show-only "templates/$template.yaml")
	done
	{
		echo "# Rendered from charts/sharedos by \`make manifests\`. Do not edit."
		"$helm" template sharedos "$chart" --namespace "$namespace" "${args[@]}" |
			sed -e '/^ *helm.sh\/chart: /d' \
				-e '/^ *app.kubernetes.io\/managed-by: /d' \
				-e '/^# Source: /d'
	} >"$target.new"
	mv "$target.new" "$target"
}

render config/rbac/manager_roles.yaml serviceaccounts rbac-manager
render config/rbac/user_roles.yaml rbac-users
render config/manager/manager.yaml secrets services manager availability
render config/webhook/manifests.yaml webhooks
render config/webhook/policies.yaml policies-authority policies-pods
