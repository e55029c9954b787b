/** PodDisruptionBudgets that can never allow an eviction, and those that wait (wanted.md 3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, kinds, type PodDisruptionBudget } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { eventMessages, setDisruption } from './disruption-stage.test-support.ts'
import { aNodeOf, consolidate, openReplacing, running, small } from './replacing-stage.test-support.ts'

function pdb(
  stage: Stage,
  app: string,
  spec: Partial<PodDisruptionBudget['spec']>,
  metadata: Partial<PodDisruptionBudget['metadata']> = {},
): void {
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace: 'default', ...metadata },
    spec: { selector: { matchLabels: { app } }, ...spec },
  })
}

const of = (app: string) => ({ labels: { app } })
const ready = { conditions: [{ type: 'Ready', status: 'True' }] } as const
const unready = { conditions: [{ type: 'Ready', status: 'False' }] } as const

async function decisionOn(stage: Stage, claim: string) {
  const decisions = await stage.operator.operator.decisions()
  return decisions.find(({ nodeClaim }) => nodeClaim === claim)
}

test('WNT-24 a PDB that can never allow is told from one that waits, and the way out or the pods are named', async (t) => {
  const stage = await openReplacing(t, { types: [small] })
  for (const name of ['alone', 'waiting', 'two', 'database']) await aNodeOf(stage, name, small)
  await aNodeOf(stage, 'elsewhere', small)
  await running(stage, 'alone-0', 'node-alone', '1500m', of('alone'))
  pdb(stage, 'alone', { minAvailable: 1 })
  await running(stage, 'waiting-0', 'node-waiting', '1500m', { ...of('waiting'), status: ready })
  await running(stage, 'waiting-1', 'node-elsewhere', '1500m', { ...of('waiting'), status: unready })
  pdb(stage, 'waiting', { minAvailable: 1 })
  await running(stage, 'two-0', 'node-two', '1500m', of('two'))
  pdb(stage, 'two', { maxUnavailable: 1 })
  pdb(stage, 'more', { selector: { matchLabels: { app: 'two' } }, maxUnavailable: 1 })
  await running(stage, 'database-0', 'node-database', '1500m', of('database'))
  const cluster = {
    apiVersion: 'postgresql.cnpg.io/v1',
    kind: 'Cluster',
    name: 'db',
    uid: 'u',
    controller: true,
  }
  pdb(stage, 'database', { minAvailable: 1 }, { ownerReferences: [cluster] })
  consolidate(stage)
  await stage.pass(2 * minutes)
  const texts: Readonly<Record<string, RegExp>> = {
    alone:
      /^A PDB prevents pod evictions \(PDB=default\/alone\): it can never allow one, as it must keep 1 of 1 pod \(minAvailable 1\): run more replicas, or set maxUnavailable: 1 in place of minAvailable$/,
    waiting:
      /^A PDB prevents pod evictions \(PDB=default\/waiting\): it has 1 healthy pods and must keep 1; it waits for default\/waiting-1 to be ready$/,
    two: /^A pod has several PDBs, which is not supported/,
    database:
      /can never allow one, .*: Cluster db owns it; run another instance there, or let it go without one$/,
  }
  for (const [name, text] of Object.entries(texts)) {
    assert.match((await decisionOn(stage, name))?.message ?? '', text)
    assert.match(eventMessages(stage, 'DisruptionBlocked', `Node/node-${name}`).join('\n'), text)
  }
  const stuck = Object.fromEntries(
    (await stage.operator.operator.decisions()).map(({ nodeClaim, stuck: why }) => [nodeClaim, why]),
  )
  assert.deepEqual(stuck, {
    alone: 'never_allows',
    database: 'never_allows',
    elsewhere: undefined,
    two: 'several_budgets',
    waiting: undefined,
  })
  assert.equal(await stage.metric('tenon_nodes_blocked', { reason: 'never_allows' }), 2)
  assert.equal(await stage.metric('tenon_nodes_blocked', { reason: 'several_budgets' }), 1)

  // A budget of the NodePool changes nothing about that, another reason to keep the node does.
  setDisruption(stage, { consolidateAfter: '0s', budgets: [{ nodes: '0' }] })
  await stage.pass(2 * minutes)
  assert.equal(await stage.metric('tenon_nodes_blocked', { reason: 'never_allows' }), 2)
  stage.patch(kinds.node, 'node-alone', { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } })
  await stage.pass(2 * minutes)
  assert.equal(await stage.metric('tenon_nodes_blocked', { reason: 'never_allows' }), 1)
})

test('WNT-24 the event about a drain says never, or for which pods it waits', async (t) => {
  const stage = await openReplacing(t, { types: [small] })
  for (const name of ['a', 'b']) await aNodeOf(stage, name, small)
  await running(stage, 'alone-0', 'node-a', '100m', of('alone'))
  pdb(stage, 'alone', { maxUnavailable: '0%' })
  await running(stage, 'waiting-0', 'node-a', '100m', { ...of('waiting'), status: ready })
  await running(stage, 'waiting-1', 'node-b', '100m', { ...of('waiting'), status: unready })
  pdb(stage, 'waiting', { minAvailable: 1 })
  await stage.pass(10 * seconds)
  stage.delete(kinds.node, 'node-a')
  await stage.pass(2 * minutes)
  const [text = ''] = eventMessages(stage, 'FailedDraining', 'Node/node-a')
  assert.match(
    text,
    /1 held by PodDisruptionBudget default\/alone, which can never allow one, as maxUnavailable is 0%: set maxUnavailable to 1 or more/,
  )
  assert.match(
    text,
    /1 held by PodDisruptionBudget default\/waiting, which .*; it waits for default\/waiting-1/,
  )
  assert.equal((await decisionOn(stage, 'a'))?.stuck, 'never_allows')
  assert.equal(await stage.metric('tenon_nodes_blocked', { reason: 'never_allows' }), 1)
})

test('WNT-24 in the compatibility mode nothing of it is told', async (t) => {
  const stage = await openReplacing(t, { types: [small], settings: { compatibility: 'karpenter' } })
  await aNodeOf(stage, 'a', small)
  await running(stage, 'alone-0', 'node-a', '1500m', of('alone'))
  pdb(stage, 'alone', { minAvailable: 1 })
  consolidate(stage)
  await stage.pass(2 * minutes + seconds)
  const [text] = eventMessages(stage, 'DisruptionBlocked', 'Node/node-a')
  assert.equal(text, 'A PDB prevents pod evictions (PDB=default/alone)')
  assert.equal(await stage.metric('tenon_nodes_blocked'), 0)
})
