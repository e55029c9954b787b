import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { AccessRule } from '@tenon/provider'
import { parseAllDocuments } from 'yaml'
import { type AutoscalerRule, autoscalerClusterRules, autoscalerRules } from './rights.ts'

/** Each verb of rules on its own, with the name of the object if it counts for one. */
function single(rules: readonly AccessRule[]): ReadonlySet<string> {
  return new Set(
    rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [''] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.flatMap((verb) => resourceNames.map((name) => `${verb} ${resource}.${group} ${name}`.trim())),
        ),
      ),
    ),
  )
}

const own = autoscalerRules({ lease: 'cluster-autoscaler', status: 'cluster-autoscaler-status' })

/** The rules of a file's roles. Directives of Helm are left out. */
function rulesIn(path: string): readonly AccessRule[] {
  const text = readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
    .replaceAll(/^ *- \{\{ include .*"(cluster-autoscaler(?:-status)?)"\) *\}\}$/gm, '      - $1')
    .replaceAll(/^.*\{\{.*$/gm, '')
  return parseAllDocuments(text).flatMap((document) => {
    const { kind, rules } = (document.toJS() ?? {}) as { kind?: string; rules?: readonly AccessRule[] }
    return kind === 'ClusterRole' || kind === 'Role' ? (rules ?? []) : []
  })
}

test('the chart grants every right that is asked for', () => {
  const granted = single([
    ...rulesIn('charts/cluster-autoscaler/templates/clusterrole.yaml'),
    ...rulesIn('charts/cluster-autoscaler/templates/role.yaml'),
  ])
  for (const right of single([...autoscalerClusterRules, ...own])) assert.ok(granted.has(right), right)
})

test("the manifests, which are Cluster Autoscaler's, grant every right that is needed", () => {
  const granted = single(rulesIn('examples/cluster-autoscaler/regular.yaml'))
  const needed = [...autoscalerClusterRules, ...own].filter(
    ({ optional }: AutoscalerRule) => optional === undefined,
  )
  for (const right of single(needed)) assert.ok(granted.has(right), right)
})
