/** Explanations beside a controller that only observes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainNode, explainNodePool, PodExplainer, type Snapshot, Study } from '@tenon/ask'
import { emptyMemory } from '@tenon/operator'
import { karpenterKinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { openDisruption } from '../disruption/disruption-stage.test-support.ts'
import { running } from '../disruption/replacing-stage.test-support.ts'
import { launch } from '../journal/other-autoscaler.test-support.ts'
import { aType, waitingPod } from '../testing/pools.test-support.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'
import { minutes } from '../testing/stage.test-support.ts'

const signal = new AbortController().signal

/** Without the times at which something was found out. */
const untimed = (answers: object): unknown =>
  JSON.parse(JSON.stringify(answers, (name, value: unknown) => (name === 'at' ? undefined : value)))

/** What is said about every pod, node and NodePool, without what only a controller remembers. */
async function answersOn(snapshot: Snapshot): Promise<object> {
  const study = await Study.open(snapshot)
  const { nodes, pods } = study.operator.caches
  const explainer = new PodExplainer(study)
  const answers: object[] = []
  for (const pod of pods.list()) {
    const { asOf: _, ...answer } = await explainer.explain(pod, { missesMs: 60_000 })
    answers.push(answer)
  }
  for (const { metadata } of nodes.list()) {
    const {
      asOf: _,
      history: __,
      ...answer
    } = (await explainNode(study, 'node', metadata.name, signal)) ?? assert.fail(metadata.name)
    answers.push(answer)
  }
  const { asOf: _, ...pool } =
    (await explainNodePool(study, 'default', signal, await study.decide())) ?? assert.fail('default')
  await study.close()
  return [...answers, pool]
}

test('EXP-28 what is explained beside a controller that only observes is what the objects alone explain', async (t) => {
  const types = [aType('small', 2), aType('large', 8)]
  const stage = await openDisruption(t, { types, settings: { observeOnly: true } })
  const ready = ['Ready', 'ValidationSucceeded', 'NodeClassReady'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: rfc3339(stage.now),
  }))
  stage.patch(karpenterKinds.nodePool, 'default', { status: { conditions: ready } }, 'status')
  launch(stage, 'steady', aType('large', 8))
  await running(stage, 'always', 'node-steady')
  waitingPod(stage, 'huge', { cpu: '32' })
  waitingPod(stage, 'big', { cpu: '8' })
  waitingPod(stage, 'fits', { cpu: '2' })
  await stage.pass(5 * minutes)
  const observed = await snapshotOf(stage, 'observer')
  const alone: Snapshot = {
    ...observed,
    settings: { ...observed.settings, observeOnly: false },
    memory: emptyMemory,
    nodeDecisions: [],
    journal: [],
  }
  const answers = untimed(await answersOn(observed))
  assert.match(JSON.stringify(answers), /No NodePool can launch a node for it/)
  assert.deepEqual(answers, untimed(await answersOn(alone)))
  // It has decided, and done nothing.
  assert.equal(
    observed.journal.some(({ kind, observed: isObserved }) => kind === 'launch' && isObserved),
    true,
  )
  assert.equal(stage.cloud.count('create'), 0)
})
