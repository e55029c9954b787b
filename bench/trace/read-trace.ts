/** The trace of 156 inference services over 31 days, as pods that are created and deleted. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Resources } from '@tenon/api'
import { gpu, rdma } from './catalogue.ts'

const file = 'disaggregated_DLRM_trace.csv.gz'
const gib = 1024 ** 3

/** One instance of a service. */
export interface TraceInstance {
  readonly name: string
  /** Application and role. */
  readonly service: string
  readonly role: 'CN' | 'HN'
  readonly requests: Resources
  /** Maximum number of instances of the service on a node; undefined: no limit. */
  readonly mostPerNode: number | undefined
  /** Seconds since the beginning of the trace; 0 for those that existed before. */
  readonly startSeconds: number
  /** Undefined for those that outlive the trace. */
  readonly endSeconds: number | undefined
}

/**
 * Reads the trace.
 * @param share of the applications to keep, evenly over all sizes.
 * @throws Error naming the file and the problem.
 */
export function readTrace(directory: string, share: number): readonly TraceInstance[] {
  const path = join(directory, file)
  const [head = '', ...lines] = gunzipSync(readFileSync(path)).toString('utf8').trimEnd().split('\n')
  const columns = new Map(head.split(',').map((name, index) => [name, index]))
  const apps = new Map<string, number>()
  const rows = lines.map((line) => {
    const cells = line.split(',')
    const cell = (name: string): string => {
      const index = columns.get(name)
      if (index === undefined) throw new Error(`${path}: no column ${name}`)
      return cells[index] ?? ''
    }
    const app = cell('app_name')
    apps.set(app, (apps.get(app) ?? 0) + 1)
    return { app, instance: instanceOf(app, cell) }
  })
  const kept = keptApps(apps, share)
  return rows.filter(({ app }) => kept.has(app)).map(({ instance }) => instance)
}

/** Every n-th application, sorted by size. */
function keptApps(sizes: ReadonlyMap<string, number>, share: number): ReadonlySet<string> {
  const sorted = [...sizes].toSorted(([a, sizeA], [b, sizeB]) => sizeB - sizeA || (a < b ? -1 : 1))
  const taken = (count: number): number => Math.floor(count * share + 0.5)
  return new Set(sorted.filter((_, index) => taken(index + 1) > taken(index)).map(([app]) => app))
}

function instanceOf(app: string, cell: (name: string) => string): TraceInstance {
  const amount = (name: string): number => Number(cell(name) || 0)
  const most = amount('max_instance_per_node')
  const role = cell('role') === 'HN' ? 'HN' : 'CN'
  return {
    name: cell('instance_sn').replaceAll('_', '-'),
    service: `${app}-${role}`.replaceAll('_', '-').toLowerCase(),
    role,
    requests: nonZero({
      cpu: amount('cpu_request') * 1000,
      memory: amount('memory_request') * gib,
      'ephemeral-storage': amount('disk_request') * gib,
      [rdma]: amount('rdma_request'),
      [gpu]: amount('gpu_request'),
    }),
    mostPerNode: most > 0 ? most : undefined,
    startSeconds: amount('creation_time'),
    endSeconds: cell('deletion_time') === '' ? undefined : amount('deletion_time'),
  }
}

function nonZero(amounts: Resources): Resources {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== 0))
}
