import { kinds, type Pod } from '@tenon/api'
import { rfc3339, SystemClock, SystemRandom, SeededRandom, silentLogger } from '@tenon/runtime'
import { realApi } from './real-api.tmp.ts'
import { fakeApi } from './fake-api.test-support.ts'
import { startControllers } from './start-controllers.ts'
import { workloads } from './objects/workloads.ts'
import { addNode, template, beat } from './testing-world.ts'

const n = Number(process.argv[2] ?? 10000)
const clock = new SystemClock(), random = new SeededRandom(1)
const api = process.argv[3] === 'fake' ? fakeApi(clock, random) : realApi(clock, random)
const c = startControllers({ api, clock, random, logger: { ...silentLogger, error: console.error, with: () => silentLogger } as never })
for (const name of ['default', 'kube-node-lease']) api.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
const world = { api, clock, alive: new Set<string>() } as never
for (let i = 0; i < 100; i++) addNode(world, `n${i}`)
let worst = 0
let last = performance.now()
setInterval(() => { const t = performance.now(); worst = Math.max(worst, t - last - 5); last = t }, 5).unref()
const svc = process.argv[4] === 'svc'
if (svc) {
  api.create(workloads.service, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' }, spec: { selector: { app: 'web' }, ports: [{ port: 80, protocol: 'TCP' }] } } as never)
  api.create(kinds.podDisruptionBudget, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web', namespace: 'default' }, spec: { selector: { matchLabels: { app: 'web' } }, minAvailable: '50%' } })
}
let i = 0
const queue: Pod[] = []
let writeMs = 0
const seen = new Set<string>()
const look = (p: Pod) => { if (!seen.has(p.metadata.uid!)) { seen.add(p.metadata.uid!); queue.push(p) } }
api.subscribe(kinds.pod, { added: look })
const pump = setInterval(() => {
  const t = performance.now()
  while (queue.length && performance.now() - t < 3) {
    const p = queue.pop()!
    api.bind('default', p.metadata.name, `n${i++ % 100}`)
    const latest = api.get(kinds.pod, 'default', p.metadata.name)!
    const now = rfc3339(clock.now())
    api.updateStatus(kinds.pod, { ...latest, status: { ...latest.status, phase: 'Running', podIP: `10.0.${i >> 8}.${i & 255}`, startTime: now, conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }] } } as Pod)
  }
  writeMs += performance.now() - t
}, 1)
const t0 = performance.now()
api.create(workloads.deployment, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default' }, spec: { replicas: n, selector: { matchLabels: { app: 'web' } }, template: template('web') } })
let created = 0
const poll = setInterval(() => {
  const d = api.get(workloads.deployment, 'default', 'web')!
  if (!created && seen.size === n) { created = performance.now() - t0; console.log('created ms', created | 0) }
  if ((d.status?.availableReplicas ?? 0) === n) {
    const done = performance.now() - t0
    console.log(JSON.stringify({ n, done: done | 0, kubeletMs: writeMs | 0, worstBlockMs: worst | 0, events: api.list(kinds.event).length, cpu: process.cpuUsage() }))
    if (process.argv[5] === 'down') {
      clearInterval(poll); worst = 0
      const t1 = performance.now()
      api.patch(workloads.deployment, 'default', 'web', { spec: { replicas: 0 } })
      const del = setInterval(() => {
        const t = performance.now()
        for (const p of api.list(kinds.pod)) { if (performance.now() - t > 5) break; if (p.metadata.deletionTimestamp) api.delete(kinds.pod, 'default', p.metadata.name, { gracePeriodSeconds: 0 }) }
        if (api.list(kinds.pod).length === 0) { console.log('down', (performance.now() - t1) | 0, 'worst', worst | 0); clearInterval(del); clearInterval(pump); c.stop(); process.exit(0) }
      }, 5)
      return
    }
    clearInterval(poll); clearInterval(pump); c.stop(); process.exit(0)
  }
}, 20)
