import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podLimits } from '../../metrics/cluster/nodes.ts'
import { aPod } from '../../state/nodes/nodes.test-support.ts'

const limited = (cpu: string) => ({ limits: { cpu }, requests: { cpu: '10m', memory: '1Gi' } })

test('limits add up as requests do: sidecars with the containers, or the largest step of the start', () => {
  const pod = aPod('p', undefined, {
    containers: [
      { name: 'a', resources: limited('1') },
      { name: 'b', resources: limited('500m') },
      { name: 'free', resources: { requests: { cpu: '4' } } },
    ],
    initContainers: [
      { name: 'sidecar', restartPolicy: 'Always', resources: limited('250m') },
      { name: 'once', resources: limited('3') },
    ],
  })
  assert.deepEqual(podLimits(pod), { cpu: 3250, pods: 1 })
})

test('limits of a pod as a whole count in place of its containers, and overhead where there is a limit', () => {
  const pod = aPod('p', undefined, {
    containers: [{ name: 'a', resources: limited('1') }],
    resources: { limits: { cpu: '2' } },
    overhead: { cpu: '100m', memory: '64Mi' },
  })
  assert.deepEqual(podLimits(pod), { cpu: 2100, pods: 1 })
  assert.deepEqual(podLimits(aPod('none')), { pods: 1 })
})
