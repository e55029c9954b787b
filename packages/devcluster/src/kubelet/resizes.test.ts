import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type Pod, type ResourceList } from '@tenon/api'
import { KubeletFixture } from './kubelet-fixture.test-support.ts'

/** A node of 3.8 cores with pods of this many that run on it. */
async function withPods(pods: Readonly<Record<string, ResourceList>>): Promise<KubeletFixture> {
  const fixture = new KubeletFixture()
  fixture.kubelet()
  for (const [name, requests] of Object.entries(pods)) fixture.pod(name, { requests })
  await fixture.seconds(4)
  return fixture
}

const podOf = ({ api }: KubeletFixture, name: string): Pod | undefined => api.get(kinds.pod, 'default', name)

function resize(fixture: KubeletFixture, name: string, cpu: string): void {
  const containers = (podOf(fixture, name)?.spec.containers ?? []).map((container) => ({
    ...container,
    resources: { requests: { cpu } },
  }))
  fixture.api.patch(kinds.pod, 'default', name, { spec: { containers } }, 'resize')
}

/** What the pod is told to have, and why it has no more. */
function seen(fixture: KubeletFixture, name: string): readonly (string | undefined)[] {
  const { conditions = [], containerStatuses = [] } = podOf(fixture, name)?.status ?? {}
  const [status] = containerStatuses
  assert.deepEqual(status?.allocatedResources, status?.resources?.requests)
  const pending = conditions.find(({ type }) => type === 'PodResizePending')
  return [status?.resources?.requests?.['cpu'], ...(pending ? [pending.reason, pending.message] : [])]
}

describe('resizes in place', () => {
  it('ASK-29 gives what the node has, and tells it from the first resize on', async () => {
    const fixture = await withPods({ p: { cpu: '1' } })
    assert.deepEqual(seen(fixture, 'p'), [undefined])
    resize(fixture, 'p', '3')
    await fixture.seconds(1)
    assert.deepEqual(seen(fixture, 'p'), ['3'])
    fixture.pod('q', { requests: { cpu: '1' } })
    await fixture.seconds(1)
    assert.equal(fixture.status('q').reason, 'OutOfcpu', 'the room is taken')
    resize(fixture, 'p', '500m')
    fixture.pod('r', { requests: { cpu: '3' } })
    await fixture.seconds(4)
    assert.deepEqual([seen(fixture, 'p'), fixture.brief('r')], [['500m'], 'Running running'])
  })

  it('ASK-29 a resize for which there is no room waits until pods end or shrink', async () => {
    const fixture = await withPods({ p: { cpu: '1' }, q: { cpu: '1' }, r: { cpu: '1' } })
    const message = (used: number) =>
      `Node didn't have enough resource: cpu, requested: 2000, used: ${used}, capacity: 3800`
    resize(fixture, 'p', '2')
    resize(fixture, 'q', '2')
    await fixture.seconds(1)
    assert.deepEqual(seen(fixture, 'p'), ['1', 'Deferred', message(2000)])
    assert.deepEqual(seen(fixture, 'q'), ['1', 'Deferred', message(2000)])
    assert.equal(fixture.brief('p'), 'Running running')
    resize(fixture, 'r', '500m')
    await fixture.seconds(1)
    assert.deepEqual(seen(fixture, 'p'), ['2'], 'the one that asked first')
    assert.deepEqual(seen(fixture, 'q'), ['1', 'Deferred', message(2500)])
    fixture.api.delete(kinds.pod, 'default', 'p')
    await fixture.seconds(3)
    assert.deepEqual(seen(fixture, 'q'), ['2'])
    resize(fixture, 'q', '3500m')
    resize(fixture, 'q', '2')
    await fixture.seconds(1)
    assert.deepEqual(seen(fixture, 'q'), ['2'], 'it no longer asks for more')
  })

  it('ASK-29 a resize beyond the node is refused for good, and leaves the pod as it is', async () => {
    const fixture = await withPods({ p: { cpu: '1' } })
    resize(fixture, 'p', '4')
    await fixture.seconds(1)
    const message = "Node didn't have enough capacity: cpu, requested: 4000, capacity: 3800"
    assert.deepEqual(seen(fixture, 'p'), ['1', 'Infeasible', message])
    fixture.pod('q', { requests: { cpu: '2800m' } })
    await fixture.seconds(4)
    assert.equal(fixture.brief('q'), 'Running running', 'the node has room beside what the pod has')
  })

  it('ASK-29 a kubelet that takes pods over knows what they have', async () => {
    const fixture = new KubeletFixture()
    const first = fixture.kubelet()
    fixture.pod('p', { requests: { cpu: '1' } })
    fixture.pod('q', { requests: { cpu: '2' } })
    await fixture.seconds(4)
    resize(fixture, 'p', '3')
    await fixture.seconds(1)
    first.stop()
    fixture.kubelet('a', { wasReady: true })
    await fixture.seconds(1)
    assert.deepEqual(seen(fixture, 'p').slice(0, 2), ['1', 'Deferred'])
    fixture.api.delete(kinds.pod, 'default', 'q')
    await fixture.seconds(3)
    assert.deepEqual(seen(fixture, 'p'), ['3'])
  })
})
