import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, type PodDisruptionBudget } from '@tenon/api'
import type { Transport } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { waitingPod } from '../testing/pools.test-support.ts'
import {
  cpu,
  left,
  openDisruption,
  setBudget,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const closed = { disruption: { budgets: [{ nodes: '0' }] } }
const guarded = (value: string) => ({ annotations: { [annotations.doNotDisrupt]: value } })
const decisions = 'voluntary_disruption_decisions_total'

/** What was said about a node, on the Node and on its claim alike. */
function blocked(stage: Stage, name: string): readonly string[] {
  const onNode = eventMessages(stage, 'DisruptionBlocked', `Node/node-${name}`)
  assert.deepEqual(eventMessages(stage, 'DisruptionBlocked', `NodeClaim/${name}`), onNode)
  return onNode
}

function label(stage: Stage, node: string, wanted: Readonly<Record<string, string | null>>): void {
  stage.patch(kinds.node, `node-${node}`, { metadata: { labels: wanted } })
}

/** An API server that lets PDBs pass which this one refuses. */
function garbled(inner: Transport): Transport {
  async function* garble(body: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body)
      yield Buffer.from(Buffer.from(chunk).toString().replaceAll('"Exists"', '"Perhaps"'))
  }
  return {
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      if (!request.path.includes('/poddisruptionbudgets')) return response
      return { ...response, body: Readable.from(garble(response.body)) }
    },
  }
}

test('DIS-11 a node of a command is no candidate for another, and nothing is said about it', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a')
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  setBudget(stage, '100%')
  await stage.pass(2 * minutes)
  assert.deepEqual(tainted(stage), ['a'])
  assert.equal(await stage.metric(decisions), 1)
  assert.deepEqual(blocked(stage, 'a'), [])
})

test('DIS-12 instances without a claim or without a node are no candidates', async (t) => {
  const stage = await openDisruption(t)
  await stage.join('own', { name: 'own', taints: [] })
  await stage.report('own')
  await stage.claim('starting')
  await stage.pass(30 * seconds)
  assert.equal(await stage.metric(decisions), 0)
  assert.deepEqual(left(stage), ['starting'])
  assert.deepEqual(eventMessages(stage, 'DisruptionBlocked', 'Node/own'), [])
  assert.deepEqual(eventMessages(stage, 'DisruptionBlocked', 'NodeClaim/starting'), [
    'The NodeClaim has no Node',
  ])
})

test('DIS-13 nodes that start, go or wait for a pod stay, and it is said why', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: '1h', budgets: [{ nodes: '0' }] } })
  setDrifted(stage, 'awaited', 'going', 'marked', 'starting')
  for (const name of ['awaited', 'going', 'marked']) await stage.ready(name)
  for (const name of ['going', 'marked']) await stage.pod(`on-${name}`, `node-${name}`, guarded('true'))
  await stage.deleteClaim('going')
  stage.operator.operator.state.mark('fake://marked')
  waitingPod(stage, 'waiting')
  await stage.pass(2 * seconds)
  await stage.claim('starting')
  await stage.join('starting')
  await stage.pass(seconds)
  setBudget(stage, '100%')
  await stage.pass(12 * seconds)
  assert.deepEqual(left(stage), ['awaited', 'marked', 'starting'])
  assert.deepEqual(tainted(stage), ['going'])
  assert.deepEqual(blocked(stage, 'starting'), ['The Node is not initialized'])
  assert.deepEqual(blocked(stage, 'going'), ['The Node is being deleted, or about to be'])
  assert.deepEqual(blocked(stage, 'marked'), ['The Node is being deleted, or about to be'])
  assert.deepEqual(blocked(stage, 'awaited'), ['The Node is kept for a pending pod'])
})

test('DIS-14 a node without a NodePool, or of an unknown one, stays, and it is said why', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'none', 'unknown')
  for (const name of ['none', 'unknown']) await stage.ready(name)
  label(stage, 'none', { [labels.nodePool]: null })
  label(stage, 'unknown', { [labels.nodePool]: 'nowhere' })
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['none', 'unknown'])
  assert.deepEqual(blocked(stage, 'none'), ['Required label is missing (label=karpenter.sh/nodepool)'])
  assert.deepEqual(blocked(stage, 'unknown'), ['NodePool not found (NodePool=nowhere)'])
})

test('DIS-15 nodes of which it is not known what they are may go', async (t) => {
  const stage = await openDisruption(t, closed)
  const missing = [labels.capacityType, labels.zone, labels.instanceType]
  for (const [index, key] of missing.entries()) {
    await stage.ready(`n${index}`)
    label(stage, `n${index}`, { [key]: null })
  }
  await stage.ready('foreign')
  label(stage, 'foreign', { [labels.instanceType]: 'unheard-of' })
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), [])
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'empty' }), 4)
})

test('DIS-17 a node stays for any pod that must not be disrupted, which is named', async (t) => {
  const stage = await openDisruption(t, closed)
  const names = ['daemon', 'mirror', 'plain']
  setDrifted(stage, ...names)
  for (const name of names) await stage.ready(name)
  const { uid = '' } = stage.nodeNow('node-mirror')?.metadata ?? {}
  const owners = {
    daemon: { ownerReferences: [await stage.daemonSet('agent')] },
    mirror: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-mirror', uid }] },
    plain: {},
  }
  for (const [name, owner] of Object.entries(owners)) {
    await stage.pod(`on-${name}`, `node-${name}`, { ...guarded('true'), ...owner })
  }
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), names)
  for (const name of names)
    assert.deepEqual(blocked(stage, name), [
      `A pod is annotated with karpenter.sh/do-not-disrupt (Pod=default/on-${name})`,
    ])
})

test('DIS-18 a pod that ends or has ended does not keep its node', async (t) => {
  const stage = await openDisruption(t, closed)
  for (const name of ['failed', 'succeeded', 'ending']) {
    await stage.ready(name)
    const spec = { terminationGracePeriodSeconds: 3600 }
    await stage.pod(`on-${name}`, `node-${name}`, { ...guarded('true'), spec })
  }
  stage.patch(kinds.pod, 'on-failed', { status: { phase: 'Failed' } }, 'status', 'default')
  stage.patch(kinds.pod, 'on-succeeded', { status: { phase: 'Succeeded' } }, 'status', 'default')
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'on-ending')
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), [])
  assert.equal(await stage.metric(decisions, { reason: 'empty' }), 1)
})

test('DIS-22 pods that must be left alone for a time hold their node until the last time is over', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('a')
  const start = stage.now
  await stage.pod('short', 'node-a', guarded('1m'))
  await stage.pod('long', 'node-a', guarded('3m'))
  setDrifted(stage, 'a')
  // What the pool asks for has changed, so that its claims are looked at.
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await stage.pass(start + 178 * seconds - stage.now)
  assert.equal(stage.state('a', 'Drifted'), 'True/ImageChanged')
  assert.deepEqual(tainted(stage), [])
  const pods = (reason: string) => [...new Set(stage.events(reason).map(({ object }) => object))]
  assert.deepEqual(pods('DoNotDisruptUntil').toSorted(), ['Pod/long', 'Pod/short'])
  assert.deepEqual(pods('DoNotDisruptGracePeriodElapsed'), ['Pod/short'])
  const [until] = eventMessages(stage, 'DoNotDisruptUntil', 'Pod/long')
  assert.ok(until?.includes(stage.podNow('long')?.status?.startTime?.slice(0, 14) ?? '-'), until)
  await stage.pass(15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
})

/** A PDB for the pods with this label that lets none of them go, or as many as it is told. */
function pdb(
  stage: Stage,
  name: string,
  app: string,
  spec: Partial<PodDisruptionBudget['spec']> = {},
  namespace: string = 'default',
): void {
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace },
    spec: { selector: { matchLabels: { app } }, maxUnavailable: 0, ...spec },
  })
}

test('DIS-23 DIS-24 DIS-25 DIS-26 DIS-27 a PDB keeps the nodes of pods that it does not let go, and is named', async (t) => {
  const stage = await openDisruption(t, closed)
  const toleration = { key: 'karpenter.sh/disrupted', operator: 'Exists' as const }
  const spec = { terminationGracePeriodSeconds: 3600 }
  const held = ['daemon', 'plain', 'two']
  const free = ['elsewhere', 'ending', 'failed', 'mirror', 'tolerant', 'unhealthy']
  setDrifted(stage, ...held, ...free)
  for (const name of [...held, ...free]) await stage.ready(name)
  stage.world.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } })
  pdb(stage, 'strict', 'strict')
  pdb(stage, 'first', 'two', { maxUnavailable: 1 })
  pdb(stage, 'second', 'two', { maxUnavailable: 1 })
  pdb(stage, 'away', 'elsewhere', {}, 'other')
  pdb(stage, 'lenient', 'unhealthy', { unhealthyPodEvictionPolicy: 'AlwaysAllow' })
  const strict = { labels: { app: 'strict' } }
  const { uid = '' } = stage.nodeNow('node-mirror')?.metadata ?? {}
  const owners = [{ apiVersion: 'v1', kind: 'Node', name: 'node-mirror', uid }]
  const pods: Record<string, Parameters<Stage['pod']>[2]> = {
    daemon: { ...strict, ownerReferences: [await stage.daemonSet('agent')] },
    plain: strict,
    two: { labels: { app: 'two' } },
    elsewhere: { labels: { app: 'elsewhere' } },
    ending: { ...strict, spec },
    failed: strict,
    mirror: { ...strict, ownerReferences: owners },
    tolerant: { ...strict, spec: { tolerations: [toleration] } },
    unhealthy: {
      labels: { app: 'unhealthy' },
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    },
  }
  for (const [name, pod] of Object.entries(pods)) await stage.pod(`on-${name}`, `node-${name}`, pod)
  stage.patch(kinds.pod, 'on-failed', { status: { phase: 'Failed' } }, 'status', 'default')
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'on-ending')
  await stage.pass(2 * seconds)
  setBudget(stage, '100%')
  await stage.pass(minutes)
  const stays = [...held, ...free].filter(
    (name) => left(stage).includes(name) && !tainted(stage).includes(name),
  )
  assert.deepEqual(stays, held)
  const message =
    'A PDB prevents pod evictions (PDB=default/strict): it can never allow one, as maxUnavailable is 0: set maxUnavailable to 1 or more'
  assert.deepEqual([blocked(stage, 'daemon'), blocked(stage, 'plain')], [[message], [message]])
  assert.deepEqual(blocked(stage, 'two'), [
    'A pod has several PDBs, which is not supported (Pod=default/on-two, PDBs=default/first,default/second)',
  ])
})

test('DIS-28 DIS-29 with a terminationGracePeriod of the claim no pod keeps a drifted node, but other nodes', async (t) => {
  const stage = await openDisruption(t, closed)
  const inTheEnd = { terminationGracePeriod: '1h' }
  const names = ['guarded-tgp', 'guarded', 'held-tgp', 'held', 'empty-tgp']
  setDrifted(stage, 'guarded-tgp', 'guarded', 'held-tgp', 'held')
  for (const name of names) await stage.ready(name, name.endsWith('-tgp') ? inTheEnd : {})
  for (const name of ['guarded-tgp', 'guarded']) await stage.pod(name, `node-${name}`, guarded('true'))
  const app = { labels: { app: 'held' } }
  for (const name of ['held-tgp', 'held']) await stage.pod(name, `node-${name}`, { ...app, ...cpu('100m') })
  const daemon = { ownerReferences: [await stage.daemonSet('agent')] }
  await stage.pod('daemon', 'node-empty-tgp', { ...guarded('true'), ...daemon })
  const selector = { matchLabels: app.labels }
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'strict', namespace: 'default' },
    spec: { selector, maxUnavailable: 0 },
  })
  stage.patch(
    kinds.podDisruptionBudget,
    'strict',
    { status: { disruptionsAllowed: 0, observedGeneration: 1 } },
    'status',
    'default',
  )
  await stage.pass(seconds)
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['empty-tgp', 'guarded', 'held'])
  for (const name of ['guarded-tgp', 'held-tgp']) {
    assert.equal(stage.claimNow(name)?.metadata.deletionTimestamp !== undefined, true, name)
    const reasons = blocked(stage, name).filter((text) => /annotated|PDB/.test(text))
    assert.deepEqual(reasons, [])
  }
})

test('DIS-21 an annotation that nobody can read keeps no node, and its pod is told', async (t) => {
  const stage = await openDisruption(t, closed)
  const values = ['garbage', '0s', '-5m', 'false']
  for (const [index, value] of values.entries()) {
    await stage.ready(`n${index}`)
    const daemon = { ownerReferences: [await stage.daemonSet(`agent-${index}`)] }
    await stage.pod(`p${index}`, `node-n${index}`, { ...guarded(value), ...daemon })
  }
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), [])
  for (const [index, value] of values.entries()) {
    const event = stage
      .events('InvalidDoNotDisruptAnnotation')
      .find(({ object }) => object === `Pod/p${index}`)
    assert.equal(event?.type, 'Warning')
    assert.ok(event.message.includes(`"${value}"`), event.message)
  }
})

test('DIS-159 a PDB whose selector cannot be read keeps the pods of its namespace, and nobody else, where they are', async (t) => {
  const stage = await openDisruption(t, { ...closed, apiPath: garbled })
  await stage.ready('a')
  await stage.ready('b')
  await stage.pod('p', 'node-a')
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'odd', namespace: 'default' },
    spec: { selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
  })
  await stage.pass(seconds)
  setDrifted(stage, 'a')
  setBudget(stage, '100%')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['a'])
  assert.match(blocked(stage, 'a').join(), /PDBs?=default\/odd/)
  const [event] = stage.events('Unreadable')
  assert.equal(event?.object, 'PodDisruptionBudget/odd')
  assert.match(
    event.message,
    /spec\.selector\.matchExpressions\[0\]\.operator must be one of In, NotIn, Exists, DoesNotExist/,
  )
})
