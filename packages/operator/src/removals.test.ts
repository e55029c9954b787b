/** Every place of the operator that deletes, taints, evicts or reboots, and what it looks at right before (reports-2.md 1). */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** Calls that take something away. */
const removals =
  /\b(?:client|kubernetes\.client)\s*\.\s*(?:delete\(\s*(?:kinds|karpenterKinds)\.(?:node|nodeClaim|pod)\b|evict\()|deleter\.delete\(|provider\.delete\(|provider\.reboot\?\.\(|marks\.taint\(|evictions\.add(?:Forced)?\(/g

/**
 * By file how many such calls there are, and what stands between them and a wrong view. A Node and its instance go by a
 * drain, whose end is read freshly (node/termination/controller.ts), unless nothing of it was ever open to pods.
 */
const known: Readonly<Record<string, readonly [calls: number, witness: string]>> = {
  'cloud/provider-layers.ts': [2, 'asks whether the cluster is the one that is known'],
  'disruption/commands/command-end.ts': [1, 'whyStays reads the pods of the node freshly before'],
  'disruption/commands/command-start.ts': [1, 'a taint, which is taken off when the command is taken back'],
  'disruption/commands/marks.ts': [1, 'takes the taint off'],
  'disruption/commands/waves.ts': [1, 'begins after whyStays'],
  'node/health.ts': [1, 'the Node is read freshly, or its event just came; a drain follows'],
  'node/termination/controller.ts': [3, 'claim and pods of a Node that is being deleted'],
  'node/termination/eviction-queue.ts': [2, 'of Nodes that are being deleted or were looked at; by UID'],
  'nodeclaim/expiration.ts': [1, 'a drain follows'],
  'nodeclaim/garbage-collection.ts': [1, 'the cloud was asked for the one instance'],
  'nodeclaim/lifecycle/delete-claim.ts': [1, 'by UID, for those above and below'],
  'nodeclaim/lifecycle/finalize.ts': [2, 'the claim is being deleted; a drain of its Node comes first'],
  'nodeclaim/lifecycle/launch.ts': [2, 'nothing was launched'],
  'nodeclaim/lifecycle/liveness.ts': [1, 'never took pods; the Node is asked for by name'],
  'nodeclaim/lifecycle/registration.ts': [1, 'a drain follows'],
  'nodeclaim/lifecycle/standing.ts': [2, 'both Nodes are read freshly; the instance stays'],
  'nodepool/static/deprovisioning.ts': [1, 'a drain follows'],
  'extensions/repair/controller.ts': [
    2,
    'Node, NodeClaim and NodePool are read freshly and lead to the same verdict',
  ],
  'extensions/podgroup/controller.ts': [3, 'podsOnNode while the taint is on'],
}

test('RPB-9 RPB-42 every call that takes something away is known, with what it looks at before', () => {
  const root = import.meta.dirname
  const found: Record<string, number> = {}
  for (const path of globSync('**/*.ts', { cwd: root })) {
    if (/\.test(?:-support)?\.ts$/.test(path)) continue
    const calls = readFileSync(join(root, path), 'utf8').match(removals)?.length ?? 0
    if (calls > 0) found[path] = calls
  }
  assert.deepEqual(found, Object.fromEntries(Object.entries(known).map(([path, [calls]]) => [path, calls])))
})
