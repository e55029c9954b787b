import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, labels, type Node, unregisteredTaint } from '@tenon/api'
import type { RegistrationHook, RegistrationVerdict } from '@tenon/provider'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

/** A hook that answers what its `verdict` says at the time, and notes when it was asked. */
class Hook implements RegistrationHook {
  readonly name: string
  readonly askedAt: number[] = []
  readonly #now: () => number
  verdict: RegistrationVerdict | Error

  constructor(stage: Stage, name: string, verdict: RegistrationVerdict | Error) {
    this.name = name
    this.verdict = verdict
    this.#now = () => stage.now
  }

  async check(): Promise<RegistrationVerdict> {
    this.askedAt.push(this.#now())
    await Promise.resolve()
    if (this.verdict instanceof Error) throw this.verdict
    return this.verdict
  }

  /** Pauses between questions, the last `count` of them. */
  pauses(count: number): readonly number[] {
    const all = this.askedAt.slice(1).map((at, i) => at - (this.askedAt[i] ?? 0))
    return all.slice(-count)
  }
}

const pending = (afterSeconds?: number): RegistrationVerdict => ({
  kind: 'pending',
  ...(afterSeconds !== undefined && { retryAfterMs: afterSeconds * seconds }),
})
const hasTaint = (stage: Stage) =>
  stage.nodeNow('node-a')?.spec?.taints?.some(({ key }) => key === unregisteredTaint.key) === true

test('LIF-25 a hook that asks for 5 s holds registration back, but not what the claim wants of its node', async (t) => {
  const stage = await Stage.open(t)
  const hook = new Hook(stage, 'volumes', pending(5))
  stage.cloud.registrationHooks = [hook]
  await stage.claim('a', { taints: [{ key: 'team', effect: 'NoSchedule' }] }, { labels: { team: 'x' } })
  await stage.join('a')
  assert.equal(stage.state('a', 'Registered'), 'Unknown/RegistrationHookPending')
  assert.equal(stage.condition('a', 'Registered')?.message, 'volumes')
  assert.equal(stage.claimNow('a')?.status?.nodeName, undefined)
  const node = stage.nodeNow('node-a')
  assert.ok(hasTaint(stage))
  assert.ok(node !== undefined)
  assert.ok(node.spec?.taints?.some(({ key }) => key === 'team'))
  assert.equal(node.metadata.labels?.['team'], 'x')
  assert.equal(node.metadata.labels[labels.registered], undefined)
  assert.deepEqual(node.metadata.finalizers, ['karpenter.sh/termination'])
  assert.equal(node.metadata.ownerReferences?.[0]?.name, 'a')
  await stage.pass(30 * seconds)
  assert.deepEqual(hook.pauses(4), [5000, 5000, 5000, 5000])
  assert.equal(await stage.metric('nodes_created_total'), 0)
})

test('LIF-26 all hooks are asked every time, all that wait are named, and the shortest pause counts', async (t) => {
  const stage = await Stage.open(t)
  const hooks = [
    new Hook(stage, 'slow', pending(10)),
    new Hook(stage, 'passed', { kind: 'passed' }),
    new Hook(stage, 'quick', pending(5)),
  ]
  stage.cloud.registrationHooks = hooks
  await stage.claim('a')
  await stage.join('a')
  assert.equal(stage.condition('a', 'Registered')?.message, 'slow, quick')
  await stage.pass(30 * seconds)
  for (const hook of hooks) assert.deepEqual(hook.pauses(3), [5000, 5000, 5000], hook.name)
})

test('LIF-27 a hook that fails is named and asked again with growing pauses', async (t) => {
  const stage = await Stage.open(t)
  const hook = new Hook(stage, 'volumes', new Error('no answer'))
  stage.cloud.registrationHooks = [hook]
  await stage.claim('a')
  await stage.join('a')
  assert.equal(stage.state('a', 'Registered'), 'Unknown/RegistrationHookPending')
  assert.equal(stage.condition('a', 'Registered')?.message, 'volumes')
  await stage.pass(40 * seconds)
  const pauses = hook.pauses(3)
  assert.ok(
    pauses.every((pause, i) => i === 0 || pause > (pauses[i - 1] ?? 0) * 1.5),
    pauses.join(),
  )
  assert.ok(hasTaint(stage))
})

test('LIF-156 of two hooks one fails and one asks for 5 s: both are named, and the failure decides the pause', async (t) => {
  const stage = await Stage.open(t)
  const failing = new Hook(stage, 'failing', new Error('no answer'))
  const waiting = new Hook(stage, 'waiting', pending(5))
  stage.cloud.registrationHooks = [failing, waiting]
  await stage.claim('a')
  await stage.join('a')
  assert.equal(stage.condition('a', 'Registered')?.message, 'failing, waiting')
  await stage.pass(60 * seconds)
  assert.ok((waiting.pauses(1)[0] ?? 0) > 10 * seconds, waiting.pauses(9).join())
  assert.ok(hasTaint(stage))
})

test('LIF-28 once the hook passes the node registers, with the labels the hook adds', async (t) => {
  const stage = await Stage.open(t)
  const hook = new Hook(stage, 'volumes', pending(5))
  stage.cloud.registrationHooks = [hook]
  await stage.claim('a', {}, { labels: { team: 'claim' } })
  await stage.join('a')
  hook.verdict = { kind: 'passed', labels: { team: 'hook', rack: 'r1' } }
  await stage.pass(6 * seconds)
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
  assert.equal(stage.claimNow('a')?.status?.nodeName, 'node-a')
  for (const object of [stage.claimNow('a'), stage.nodeNow('node-a')]) {
    assert.equal(object?.metadata.labels?.['rack'], 'r1')
    assert.equal(object.metadata.labels['team'], 'hook')
  }
  assert.equal(stage.nodeNow('node-a')?.metadata.labels?.[labels.registered], 'true')
  assert.ok(!hasTaint(stage))
  assert.equal(await stage.metric('nodes_created_total', { nodepool: 'default' }), 1)
  const asked = hook.askedAt.length
  await stage.pass(30 * seconds)
  assert.equal(hook.askedAt.length, asked)
})

test('a hook that never passes is no excuse: the claim goes after 15 min, and its Node with it', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.registrationHooks = [new Hook(stage, 'volumes', pending(5))]
  await stage.claim('a')
  await stage.join('a')
  await stage.pass(14 * minutes)
  assert.equal(stage.state('a', 'Registered'), 'Unknown/RegistrationHookPending')
  await stage.pass(2 * minutes)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'registration_timeout' }), 1)
  assert.deepEqual([stage.claimNow('a'), stage.nodeNow('node-a')], [undefined, undefined])
  assert.deepEqual(stage.cloud.instances, [])
})

test('a hook that waits without saying how long is asked with growing pauses', async (t) => {
  const stage = await Stage.open(t)
  const hook = new Hook(stage, 'volumes', pending())
  stage.cloud.registrationHooks = [hook]
  await stage.claim('a')
  await stage.join('a')
  await stage.pass(40 * seconds)
  const pauses = hook.pauses(3)
  assert.ok((pauses[2] ?? 0) > (pauses[0] ?? 0) * 3, pauses.join())
})

test('a node counts as created once, also when the claim could not be written at first', async (t) => {
  let refusals = 2
  const apiPath = intercepting((method, path, body) =>
    method === 'PATCH' && path.includes('/nodeclaims/a/status') && body.includes('nodeName') && refusals-- > 0
      ? 'conflict'
      : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  await stage.join('a')
  await stage.pass(10 * seconds)
  assert.equal(stage.state('a', 'Registered'), 'True/Registered')
  assert.equal(await stage.metric('nodes_created_total'), 1)
})

test('a node that lacks nothing by then is initialized with the write that registers it', async (t) => {
  const stage = await Stage.open(t)
  const hook = new Hook(stage, 'volumes', pending(5))
  stage.cloud.registrationHooks = [hook]
  for (const [name, startupTaints] of [
    ['whole', []],
    ['booting', [{ key: 'boot', effect: 'NoSchedule' } as const]],
  ] as const) {
    await stage.claim(name, { startupTaints: [...startupTaints] })
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  const atRegistration: Record<string, string | undefined> = {}
  stage.world.cluster.server.local.subscribe<Node>(kinds.node, {
    updated: ({ metadata }, old) => {
      const isNew = old.metadata.labels?.[labels.registered] === undefined
      if (isNew && metadata.labels?.[labels.registered] !== undefined)
        atRegistration[metadata.name] = metadata.labels[labels.initialized]
    },
  })
  hook.verdict = { kind: 'passed' }
  await stage.pass(6 * seconds)
  assert.deepEqual(atRegistration, { 'node-whole': 'true', 'node-booting': undefined })
  assert.equal(stage.state('whole', 'Initialized'), 'True/Initialized')
  assert.equal(stage.state('booting', 'Initialized'), 'Unknown/StartupTaintsExist')
})
