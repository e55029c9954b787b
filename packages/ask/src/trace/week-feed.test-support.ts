/** A worker that records a synthetic cluster: 10 000 pods, of which 50 come and 50 go every minute. */
import { workerData } from 'node:worker_threads'
import type { Pod } from '@tenon/api'
import { rfc3339, SeededRandom, integerBetween, uuid } from '@tenon/runtime'
import { PodLog } from './pod-log.ts'
import { shapeOf } from './shapes.ts'
import { TraceFile } from './trace-file.ts'
import { emptyTraceState } from './trace-state.ts'

const startMs = Date.UTC(2026, 0, 1)
const minuteMs = 60_000
const livePods = 10_000
const changesEachWay = 50
const workloads = 300

const { path, minutes } = workerData as { readonly path: string; readonly minutes: number }
const random = new SeededRandom(18)
const clock = { nowMs: startMs, now: () => clock.nowMs }
const file = await TraceFile.create(path)
const log = new PodLog(file, clock, emptyTraceState())
/** What a cache of the cluster holds. */
const live: Pod[] = []

function aPod(): Pod {
  const workload = integerBetween(random, 0, workloads - 1)
  const uid = uuid(random)
  const name = `workload-${workload}-${uid.slice(0, 10)}`
  const shape = shapeOf({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: `team-${workload % 20}`,
      labels: { app: `workload-${workload}`, 'pod-template-hash': String(workload * 7919) },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `workload-${workload}`,
          uid: `set-${workload}`,
          controller: true,
        },
      ],
    },
    spec: {
      containers: [
        {
          name: 'app',
          resources: { requests: { cpu: `${100 + workload}m`, memory: `${200 + workload}Mi` } },
        },
        { name: 'proxy', resources: { requests: { cpu: '100m', memory: '128Mi' } } },
      ],
    },
  })
  return { ...shape, metadata: { ...shape.metadata, name, uid, creationTimestamp: rfc3339(clock.nowMs) } }
}

function come(): void {
  const pod = aPod()
  live.push(pod)
  log.seen(pod)
}

function go(): void {
  const at = integerBetween(random, 0, live.length - 1)
  const pod = live[at]
  const last = live.pop()
  if (pod === undefined || last === undefined) return
  if (at < live.length) live[at] = last
  log.gone(pod)
}

for (let pod = 0; pod < livePods; pod++) come()
for (let minute = 0; minute < minutes; minute++) {
  clock.nowMs += minuteMs
  for (let change = 0; change < changesEachWay; change++) {
    come()
    go()
  }
  log.settle(clock.nowMs)
  file.write({ kind: 'alive', atMs: clock.nowMs })
  await file.flush()
}
await file.close()
