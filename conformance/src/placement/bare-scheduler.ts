/** Runs kube-scheduler with its own API server and without controllers, to ask where pods could be placed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { minorOf } from '@tenon/api'
import { createKubeClient, type KubeClient, loadKubeConfig } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { waitForPath } from '../api-probe.ts'
import { type Binaries, ensureBinaries } from '../binaries.ts'
import { apiserverArguments, etcdArguments, freePorts, sparingCollector } from '../boot.ts'
import { prepareCredentials, writeKubeconfigs } from '../credentials.ts'
import { ProcessGroup } from '../processes.ts'

const startTimeoutMs = 60_000
/** No controller creates service accounts, removes finalizers, or marks nodes as ready. */
const withoutControllers = ['ServiceAccount', 'StorageObjectInUseProtection', 'TaintNodesByCondition']

/** A scheduler that binds nothing: its extender rejects every node, and records the nodes that passed the filters. */
export class BareScheduler {
  readonly client: KubeClient
  /** Minor version of Kubernetes. */
  readonly minor: number
  /** Nodes that passed all filters, by pod UID; pods without any are absent. */
  readonly feasible: ReadonlyMap<string, readonly string[]>
  readonly #stop: () => Promise<void>

  private constructor(
    client: KubeClient,
    minor: number,
    feasible: ReadonlyMap<string, readonly string[]>,
    stop: () => Promise<void>,
  ) {
    this.client = client
    this.minor = minor
    this.feasible = feasible
    this.#stop = stop
  }

  /** @throws Error if a program ends or the API server is not ready after {@link startTimeoutMs}. */
  static async start(clock: Clock): Promise<BareScheduler> {
    const progress = (line: string) => process.stderr.write(`${line}\n`)
    const names = ['etcd', 'kube-apiserver', 'kube-scheduler'] as const
    const binaries = await ensureBinaries(names, { environment: process.env, clock, progress })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-bare-scheduler-'))
    for (const entry of ['etcd', 'logs']) mkdirSync(join(folder, entry), { mode: 0o700 })
    const processes = new ProcessGroup(join(folder, 'logs'), clock)
    const feasible = new Map<string, readonly string[]>()
    const extender = await startExtender(feasible)
    try {
      const kubeconfig = await Promise.race([
        startPrograms({ folder, binaries: binaries as Binaries, processes, clock, extender }),
        processes.failure,
      ])
      const config = loadKubeConfig({ env: {}, kubeconfig, clock })
      const client = createKubeClient({ transport: config.transport, clock, userAgent: 'placement' })
      const version = await client.serverVersion()
      const minor = minorOf(version)
      if (minor === undefined) throw new Error(`the API server says that it is ${version}`)
      return new BareScheduler(client, minor, feasible, async () => {
        config.close()
        await end(processes, extender, folder)
      })
    } catch (error) {
      await end(processes, extender, folder)
      throw error
    }
  }

  /** Stops the programs and removes their files. */
  stop(): Promise<void> {
    return this.#stop()
  }
}

async function end(processes: ProcessGroup, extender: Server, folder: string): Promise<void> {
  await processes.stop(0)
  extender.close()
  extender.closeAllConnections()
  rmSync(folder, { recursive: true, force: true })
}

interface Parts {
  readonly folder: string
  readonly binaries: Binaries
  readonly processes: ProcessGroup
  readonly clock: Clock
  readonly extender: Server
}

/** Resolves with the administrator's kubeconfig once the API server is ready. */
async function startPrograms({ folder, binaries, processes, clock, extender }: Parts): Promise<string> {
  const environment = { ...sparingCollector, ...process.env }
  const credentials = prepareCredentials(join(folder, 'pki'))
  const [clientPort, peerPort, apiPort] = await freePorts(3)
  const etcd = `http://127.0.0.1:${clientPort}`
  const endpoint = `https://127.0.0.1:${apiPort}`
  const etcdFlags = etcdArguments(join(folder, 'etcd'), etcd, `http://127.0.0.1:${peerPort}`)
  processes.start('etcd', binaries.etcd, etcdFlags, environment)
  const apiFlags = [
    ...apiserverArguments(credentials, etcd, apiPort ?? 0),
    `--disable-admission-plugins=${withoutControllers.join()}`,
  ]
  processes.start('kube-apiserver', binaries['kube-apiserver'], apiFlags, environment)
  const probe = { endpoint, token: credentials.adminToken, clock }
  const deadline = AbortSignal.timeout(startTimeoutMs)
  await waitForPath(probe, '/readyz', deadline)
  await waitForPath(probe, '/api/v1/namespaces/default', deadline)
  writeKubeconfigs(credentials, endpoint)
  const configuration = join(folder, 'scheduler.json')
  const { port } = extender.address() as AddressInfo
  writeFileSync(configuration, schedulerConfiguration(credentials.kubeconfigs.scheduler, port))
  const schedulerFlags = [`--config=${configuration}`, '--secure-port=0']
  processes.start('kube-scheduler', binaries['kube-scheduler'], schedulerFlags, environment)
  return credentials.kubeconfigs.admin
}

function schedulerConfiguration(kubeconfig: string, port: number): string {
  return JSON.stringify({
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig, qps: 1000, burst: 2000 },
    leaderElection: { leaderElect: false },
    // All nodes are evaluated, and each pod is tried only once.
    percentageOfNodesToScore: 100,
    podInitialBackoffSeconds: 60,
    podMaxBackoffSeconds: 60,
    extenders: [
      {
        urlPrefix: `http://127.0.0.1:${port}`,
        filterVerb: 'filter',
        nodeCacheCapable: true,
        httpTimeout: '30s',
      },
    ],
  })
}

/** kube-scheduler's extender API has no JSON tags: fields have their Go names. */
interface ExtenderArguments {
  readonly Pod: { readonly metadata: { readonly uid: string } }
  readonly NodeNames?: readonly string[]
}

async function startExtender(feasible: Map<string, readonly string[]>): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { Pod, NodeNames = [] } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ExtenderArguments
      feasible.set(Pod.metadata.uid, NodeNames)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ NodeNames: [] }))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return server
}
