// Package policytest proves what a folder of manifests allows, without a cluster:
// it reads the five kinds and files of cases, asks the kernel each case's question,
// and compares the answers.
//
// A file of cases is YAML of kind AuthorizationTest beside the manifests:
//
//	apiVersion: sharedos.dev/v1alpha1
//	kind: AuthorizationTest
//	metadata: {name: atlas, namespace: team-atlas}
//	spec:
//	  at: "2026-09-15T12:00:00Z"           # when it is asked; default: now
//	  cases:
//	    - name: the assistant reads the status
//	      principal: alice-assistant
//	      purpose: atlas-status             # default: the Principal's first
//	      action: read
//	      resource: files:Work/atlas/status.md
//	      expect: allowed
//	      grant: read-atlas                 # optional: by which Grant
//	    - name: but no salaries
//	      principal: alice-assistant
//	      action: read
//	      resource: files:Work/salaries.csv
//	      expect: denied
//	      reason: no_matching_grant         # optional
//	    - name: what a turn is offered
//	      principal: alice-assistant
//	      tools: [files.grep, files.list, files.read, files.stat]
//	    - name: what is within reach
//	      principal: alice-assistant
//	      reach:
//	        - {place: "files:Work/atlas/**", actions: [grep, list, read, stat]}
package policytest
