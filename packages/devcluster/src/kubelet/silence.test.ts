import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type Lease, type Node, type Pod } from '@tenon/api'
import { KubeletFixture } from './kubelet-fixture.test-support.ts'

const renewedAt = (fixture: KubeletFixture): string | undefined =>
  fixture.api.get<Lease>(kinds.lease, 'kube-node-lease', 'a')?.spec?.renewTime

/** What the node lifecycle controller does with a node that says nothing. */
function declareLost(fixture: KubeletFixture, pod: string): void {
  const unknown = (type: string, status: string) => ({ type, status: type === 'Ready' ? 'Unknown' : status })
  const node = fixture.node() as Node
  const conditions = (node.status?.conditions ?? []).map(({ type, status }) => unknown(type, status))
  fixture.api.patch(kinds.node, undefined, 'a', { status: { conditions } }, 'status')
  const current = fixture.api.get<Pod>(kinds.pod, 'default', pod)?.status?.conditions ?? []
  const lost = current.map((each) => (each.type === 'Ready' ? { ...each, status: 'False' } : each))
  fixture.api.patch(kinds.pod, 'default', pod, { status: { conditions: lost } }, 'status')
}

const isReady = (fixture: KubeletFixture, pod: string): boolean =>
  fixture.status(pod).conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true

describe('a kubelet that falls silent', () => {
  it('renews no lease until the time is over', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(30)
    const before = renewedAt(fixture)
    fixture.kubelets.silence('a', 60_000)
    await fixture.seconds(55)
    assert.equal(renewedAt(fixture), before)
    await fixture.seconds(20)
    assert.notEqual(renewedAt(fixture), before)
  })

  it('stays silent under its old name once it is renamed', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(30)
    fixture.kubelets.rename('a', 'b')
    const before = renewedAt(fixture)
    fixture.kubelets.silence('a', 20_000)
    await fixture.seconds(60)
    assert.equal(renewedAt(fixture), before)
  })

  it('says that its pods are ready when it is back, although they were taken for lost', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    fixture.pod('p')
    await fixture.seconds(10)
    assert.ok(isReady(fixture, 'p'))
    fixture.kubelets.silence('a', 60_000)
    declareLost(fixture, 'p')
    await fixture.seconds(50)
    assert.ok(!isReady(fixture, 'p'))
    await fixture.seconds(25)
    assert.equal(fixture.ready(), 'True')
    assert.ok(isReady(fixture, 'p'))
  })
})
