import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds } from '@tenon/api'
import { KubeError, type ReconcileResult } from '@tenon/kube'
import { ownNames } from '../names.ts'
import { nodeGroupKind } from '../nodegroup/types.ts'
import { aClaim, aNodeClass, Stage } from '../testing/stage.test-support.ts'
import { NodeClassStatus } from './status-controller.ts'
import { type CleverNodeClass, cleverNodeClassKind } from './types.ts'

class Classes extends Stage {
  /** As long as the cluster serves no NodeGroups. */
  isOther = false
  readonly #status = new NodeClassStatus({
    kube: {
      get: async (type, key) => {
        if (this.isOther && type.plural === nodeGroupKind.plural)
          throw new KubeError('other', 404, 'the server answered 404: 404 page not found')
        return await this.kube.get(type, key)
      },
      list: (type, options) => this.kube.list(type, options),
      patch: this.kube.patch.bind(this.kube),
    },
    nodeClasses: this.kube.cache(cleverNodeClassKind),
    events: this.kube.recorder,
    clock: this.clock,
  })

  put(spec: NonNullable<CleverNodeClass['spec']>): void {
    const { status: _none, ...bare } = aNodeClass({ spec })
    this.kube.put(cleverNodeClassKind, bare)
  }

  async reconcile(): Promise<ReconcileResult> {
    return await this.settled(this.#status.reconcile('default', new AbortController().signal))
  }

  get class(): CleverNodeClass | undefined {
    return this.kube.all(cleverNodeClassKind)[0]
  }

  /** Condition as `status/reason`. */
  condition(type: string): string {
    const found = this.class && conditionOf(this.class, type)
    return found === undefined ? 'none' : `${found.status}/${found.reason}`
  }
}

test('CLV-66 a new class gets the finalizer and is ready', async () => {
  const stage = new Classes()
  stage.put({})
  assert.equal((await stage.reconcile()).kind, 'done')
  assert.deepEqual(stage.class?.metadata.finalizers, [ownNames.termination])
  assert.equal(stage.condition('ValidationSucceeded'), 'True/ValidationSucceeded')
  assert.equal(stage.condition('NodeGroupAPIServed'), 'True/NodeGroupAPIServed')
  assert.equal(stage.condition('Ready'), 'True/Ready')
  const writes = stage.kube.writes.length
  await stage.reconcile()
  assert.equal(stage.kube.writes.length, writes, 'what has not changed is not written')
})

for (const [title, labels] of [
  ['a reserved key', { 'clever-cloud.com/flavor': 'M' }],
  ['a value of 64 characters', { team: 'x'.repeat(64) }],
] as const) {
  test(`CLV-67 ${title} makes a class not ready until it is fixed`, async () => {
    const stage = new Classes()
    stage.put({ labels })
    await stage.reconcile()
    assert.equal(stage.condition('ValidationSucceeded'), 'False/ValidationFailed')
    assert.equal(stage.condition('Ready'), 'False/UnhealthyDependents')
    assert.deepEqual(stage.events(), ['ValidationFailed default'])
    const nodeClass = stage.class ?? assert.fail()
    const metadata = { ...nodeClass.metadata, generation: 2 }
    stage.kube.put(cleverNodeClassKind, { ...nodeClass, metadata, spec: { labels: { team: 'data' } } })
    await stage.reconcile()
    assert.equal(stage.condition('Ready'), 'True/Ready')
  })
}

test('CLV-68 without NodeGroups in the cluster a class is not ready, and it is asked again in a minute', async () => {
  const stage = new Classes()
  stage.put({})
  stage.isOther = true
  assert.deepEqual(await stage.reconcile(), { kind: 'after', delayMs: 60_000 })
  assert.equal(stage.condition('NodeGroupAPIServed'), 'False/NodeGroupAPIUnavailable')
  assert.equal(stage.condition('Ready'), 'False/UnhealthyDependents')
  stage.isOther = false
  await stage.reconcile()
  assert.equal(stage.condition('Ready'), 'True/Ready')
})

test('CLV-69 CLV-101 a class goes once no claim of its kind refers to it', async () => {
  const stage = new Classes()
  stage.put({})
  await stage.reconcile()
  const foreign = aClaim('foreign')
  const nodeClassRef = { ...foreign.spec.nodeClassRef, kind: 'OtherNodeClass' }
  stage.kube.put(karpenterKinds.nodeClaim, { ...foreign, spec: { ...foreign.spec, nodeClassRef } })
  for (const name of ['one', 'two']) stage.kube.put(karpenterKinds.nodeClaim, aClaim(name))
  await stage.kube.delete(cleverNodeClassKind, { name: 'default' })
  for (const name of ['one', 'two']) {
    assert.deepEqual(await stage.reconcile(), { kind: 'after', delayMs: 30_000 })
    assert.notEqual(stage.class, undefined)
    await stage.kube.delete(karpenterKinds.nodeClaim, { name })
  }
  await stage.reconcile()
  assert.equal(stage.class, undefined)
})
