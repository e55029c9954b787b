/** A cluster in which another Karpenter launches nodes, and what happens to it while a guide of docs/takeover is followed. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { V1Pod } from '@kubernetes/client-node'
import { SystemClock } from '@tenon/runtime'
import { parseAllDocuments, stringify } from 'yaml'
import { repositoryRoot } from '../../build/repository-root.ts'
import {
  addProgram,
  addTenon,
  type Block,
  blocksOf,
  runCommands,
} from '../../packages/cli/src/testing/pages.test-support.ts'
import { ensureBinaries } from '../src/binaries.ts'
import { PodRunner } from '../src/chart/pod-runner.ts'
import { patience } from '../src/patience.ts'
import { unchanging } from '../src/takeover/stand.ts'
import { Cluster, type TestObject } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

type Variables = Readonly<Record<string, string>>

export interface Place {
  /** The cloud, and the page of docs/takeover. */
  readonly provider: string
  readonly kubeconfigPath: string
  /** Whether the cloud runs the other controller; or a Deployment `karpenter` does, in a namespace of that name. */
  readonly isManaged: boolean
  /** What a reader of the page sets. */
  readonly reader: Variables
  /** What the controllers need that is in no page, as the address of a simulated cloud. */
  readonly controllers: Variables
  /** The node class `work`, and what it needs. */
  readonly nodeClass: string
  /** Of its NodePool. */
  readonly nodeClassRef: { readonly group: string; readonly kind: string }
}

const namespace = 'tenon'
const leaseKind = ['coordination.k8s.io/v1', 'Lease'] as const
const leaseName = 'karpenter-leader-election'
const clock = new SystemClock()
/** Most of the time nothing happens but that a lease runs out. */
const pollMs = 1000
const limitMs = 120_000 * patience
const workSize = 3

/** Kinds that a Karpenter of the cloud brings, as an earlier release of it had them. */
function formerCrds(nodeClassKind: string): string {
  const theirs = new Set(['NodePool', 'NodeClaim', 'NodeOverlay', nodeClassKind])
  return parseAllDocuments(crdsYaml())
    .filter((each) => theirs.has(String(each.getIn(['spec', 'names', 'kind']))))
    .map((each) => {
      each.deleteIn(['spec', 'versions', 0, 'additionalPrinterColumns'])
      return String(each)
    })
    .join('---\n')
}

/** Each pod needs a node of its own, and a node that is empty goes at once. */
function workload({ group, kind }: Place['nodeClassRef']): string {
  const app = { app: 'work' }
  const nodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'work' },
    spec: {
      template: {
        spec: { nodeClassRef: { group, kind, name: 'work' }, requirements: [], expireAfter: 'Never' },
      },
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '1s', budgets: [{ nodes: '100%' }] },
    },
  }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'work', namespace: 'default' },
    spec: {
      replicas: workSize,
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: {
          terminationGracePeriodSeconds: 0,
          nodeSelector: { 'karpenter.sh/nodepool': 'work' },
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: app } },
              ],
            },
          },
          containers: [
            { name: 'app', image: 'registry.k8s.io/pause:3.10', resources: { requests: { cpu: '100m' } } },
          ],
        },
      },
    },
  }
  return [nodePool, deployment].map((each) => stringify(each)).join('---\n')
}

/** A Karpenter of before 1.1 that the reader runs in the cluster: nobody answers its webhook once it is stopped. */
const formerWebhook = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'validation.webhook.karpenter.sh' },
  webhooks: [
    {
      name: 'validation.webhook.karpenter.sh',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      clientConfig: { service: { namespace: 'karpenter', name: 'karpenter' } },
      rules: [
        {
          apiGroups: ['karpenter.sh'],
          apiVersions: ['v1'],
          operations: ['CREATE', 'UPDATE'],
          resources: ['nodepools', 'nodeclaims', 'nodepools/status', 'nodeclaims/status'],
        },
      ],
    },
  ],
}

/** A Karpenter that the reader runs: kubelets only pretend to, and the test runs its controller outside of the cluster. */
const ownKarpenter = `
apiVersion: v1
kind: Namespace
metadata: { name: karpenter }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: karpenter, namespace: karpenter }
spec:
  replicas: 1
  selector: { matchLabels: { app: karpenter } }
  template:
    metadata: { labels: { app: karpenter } }
    spec:
      tolerations: [{ operator: Exists }]
      containers: [{ name: controller, image: registry.example.com/karpenter/controller:1.0.8 }]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: { name: ${leaseName}, namespace: karpenter }
spec:
  holderIdentity: karpenter-7d9c5b6f4-x2v8q_0b6c6b0e-6f5e-4c0b-9a51-3d1f0e0c8a77
  leaseDurationSeconds: 15
  renewTime: '2026-01-01T00:00:00.000000Z'
`

/** The blocks that are run, by the heading they stand under. */
function stepsOf(page: string): ReadonlyMap<string, readonly Block[]> {
  const text = readFileSync(join(repositoryRoot, page), 'utf8').split('\n')
  const headingOf = ({ place }: Block) =>
    text.slice(0, Number(place.split(':')[1])).findLast((line) => line.startsWith('#')) ?? ''
  return Map.groupBy(
    blocksOf(page).filter(({ marker }) => marker === 'run'),
    headingOf,
  )
}

/** A server may close a connection just as it is used again: reads are tried once more. */
class PatientCluster extends Cluster {
  override get(...key: Parameters<Cluster['get']>): ReturnType<Cluster['get']> {
    return super.get(...key).catch(() => super.get(...key))
  }

  override list(...kind: Parameters<Cluster['list']>): ReturnType<Cluster['list']> {
    return super.list(...kind).catch(() => super.list(...kind))
  }
}

/** See {@link TakeoverStand.follow}. */
export async function followTakeover(place: Place, say: (line: string) => void): Promise<void> {
  const stand = await TakeoverStand.open(place)
  try {
    await stand.prepare()
    await stand.follow(say)
  } finally {
    await stand.close()
  }
}

class TakeoverStand {
  readonly #place: Place
  readonly #folder: string
  readonly #cluster: PatientCluster
  /** The other one: it runs outside of the cluster, and holds no lease in it. */
  readonly #other: Controller
  #isOtherOn = false
  readonly #runner: PodRunner
  readonly #variables: Variables
  /** Holders of Tenon's lease whose processes are gone. */
  readonly #dead = new Set<string>()
  /** Written once there is a pod that needs it. */
  #account: Promise<void> | undefined
  /** As it was before the commands that ran last. */
  #before = { holder: '', pods: '' }

  private constructor(place: Place, folder: string, path: string) {
    const { kubeconfigPath, controllers } = place
    this.#place = place
    this.#folder = folder
    this.#cluster = new PatientCluster(kubeconfigPath)
    this.#variables = { ...place.reader, KUBECONFIG: kubeconfigPath, PATH: path }
    const quick = { ...controllers, BATCH_IDLE_DURATION: '200ms' }
    const apart = { DEBUG_PORT: '0', DISABLE_LEADER_ELECTION: 'true', COMPATIBILITY: 'karpenter' }
    this.#other = new Controller(
      kubeconfigPath,
      join(folder, 'other.log'),
      { ...quick, ...apart },
      place.provider,
    )
    this.#runner = new PodRunner({
      folder,
      kubeconfigPath: join(folder, 'account.kubeconfig'),
      pods: () => this.#pods(),
      clock,
      restarts: true,
      pollMs,
      variables: quick,
      secret: async (name) => {
        const secret = await this.#cluster.get('v1', 'Secret', name, namespace)
        return (secret as { readonly data?: Variables } | undefined)?.data ?? {}
      },
    })
  }

  /** Builds helm if necessary. */
  static async open(place: Place): Promise<TakeoverStand> {
    const binaries = await ensureBinaries(['helm', 'kubectl'], {
      environment: process.env,
      clock,
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-takeover-'))
    // A busy host answers late.
    await addTenon(folder, 'if [ "$1" = preflight ]; then set -- "$@" --timeout 2m; fi')
    // The cloud's part: the test starts and stops the managed controller as the file says.
    await addProgram(folder, 'terraform', 'for last; do :; done; echo "$last" > terraform.state')
    for (const name of ['charts', 'docs', 'examples'])
      symlinkSync(join(repositoryRoot, name), join(folder, name))
    const programs = Object.values(binaries).map((program) => dirname(program))
    const path = [join(folder, 'bin'), ...programs, process.env['PATH']].join(delimiter)
    return new TakeoverStand(place, folder, path)
  }

  /** Lets the other controller launch the nodes of a Deployment. */
  async prepare(): Promise<void> {
    const { nodeClass, nodeClassRef, isManaged } = this.#place
    await this.#apply(formerCrds(nodeClassRef.kind))
    await this.#shell('kubectl wait --for=condition=Established crd --all --timeout=60s')
    await this.#apply(nodeClass)
    await this.#apply(workload(nodeClassRef))
    if (!isManaged) await this.#apply(ownKarpenter)
    await this.#followOther()
    await this.#untilWorkRuns(workSize)
  }

  async close(): Promise<void> {
    await this.#runner.stop()
    await this.#other.end('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /**
   * Runs the commands of the page. After each step both controllers are killed and started again; nodes, NodeClaims and
   * pods are as before, and a further pod gets one node of whoever is to act.
   */
  async follow(say: (line: string) => void): Promise<void> {
    const before = await this.#picture()
    const crds = await this.#crds()
    let last = this.#acting()
    for (const [step, blocks] of stepsOf(`docs/takeover/${this.#place.provider}.md`)) {
      const start = clock.monotonic()
      for (const { place, text } of blocks) {
        await this.#noteHolder()
        await this.#shell(text, place)
        await this.#followOther()
        await this.#untilLed()
        assert.deepEqual(await this.#picture(), before, place)
      }
      await this.#kill()
      assert.deepEqual(await this.#picture(), before, `${step}, and kill -9`)
      const acting = this.#acting()
      if (acting !== last && acting !== 'nobody') await this.#burst(step)
      assert.deepEqual(await this.#picture(), before, `${step}, and a pod that came and went`)
      last = acting
      say(`${step}: then ${acting}, after ${Math.round((clock.monotonic() - start) / 1000)} s`)
    }
    assert.equal(last, 'other')
    assert.deepEqual(await this.#crds(), crds)
    assert.equal(await this.#shell(`kubectl get namespace ${namespace} --ignore-not-found -o name`), '')
  }

  /** Runs commands as a reader does. @throws Error with what they said when they fail. */
  async #shell(commands: string, place = ''): Promise<string> {
    const { code, out, err } = await runCommands(this.#folder, commands, this.#variables)
    if (code !== 0) throw new Error(`${place}\n${commands}\n${out}${err}`)
    return out
  }

  async #apply(text: string): Promise<void> {
    writeFileSync(join(this.#folder, 'objects.yaml'), text)
    await this.#shell('kubectl apply --server-side --force-conflicts -f objects.yaml')
  }

  /** The other one is on unless the cloud, or its Deployment, was told otherwise. */
  async #followOther(): Promise<void> {
    const state = join(this.#folder, 'terraform.state')
    const isOn = this.#place.isManaged
      ? !existsSync(state) || readFileSync(state, 'utf8').trim() !== 'karpenter=false'
      : (await this.#cluster.get('apps/v1', 'Deployment', 'karpenter', 'karpenter'))?.spec?.['replicas'] !== 0
    if (isOn === this.#isOtherOn) {
      if (isOn) this.#other.assertRunning()
      return
    }
    this.#isOtherOn = isOn
    if (isOn) this.#other.start()
    else {
      await this.#other.end('SIGTERM')
      await this.#apply(stringify(formerWebhook))
    }
  }

  /** Who launches nodes. */
  #acting(): 'other' | 'tenon' | 'other beside tenon' | 'nobody' {
    const [tenon] = this.#runner.running.values()
    const isObserving = tenon?.env['OBSERVE_ONLY'] === 'true'
    assert.ok(!(this.#isOtherOn && tenon !== undefined && !isObserving), 'both act')
    if (this.#isOtherOn) return tenon === undefined ? 'other' : 'other beside tenon'
    return tenon === undefined || isObserving ? 'nobody' : 'tenon'
  }

  async #pods(): Promise<readonly V1Pod[]> {
    const pods = await this.#cluster.list('v1', 'Pod', namespace, 'app.kubernetes.io/instance=tenon')
    // Their service account is there before them.
    if (pods.length > 0) await (this.#account ??= this.#writeAccount())
    return pods as object[]
  }

  async #writeAccount(): Promise<void> {
    const config = 'kubectl --kubeconfig account.kubeconfig config'
    writeFileSync(join(this.#folder, 'account.kubeconfig'), readFileSync(this.#place.kubeconfigPath), {
      mode: 0o600,
    })
    await this.#shell(
      `token=$(kubectl create token tenon --namespace ${namespace} --duration=2h)
       ${config} set-credentials account --token $token
       ${config} set-context --current --user account`,
    )
  }

  async #holder(): Promise<string> {
    const lease = await this.#cluster.get(...leaseKind, leaseName, namespace)
    return (lease?.spec?.['holderIdentity'] as string | undefined) ?? ''
  }

  async #noteHolder(): Promise<void> {
    this.#before = { holder: await this.#holder(), pods: [...this.#runner.running.keys()].join() }
  }

  /** Waits until a process runs for each of Tenon's pods, and one of them leads. */
  async #untilLed(): Promise<void> {
    await until('Tenon leads, if it is there', async () => {
      const pods = (await this.#pods()).filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
      const names = pods.map(({ metadata }) => metadata?.name ?? '')
      if (names.join() !== [...this.#runner.running.keys()].join()) return false
      if (names.length !== 1) return names.length === 0
      if (names.join() !== this.#before.pods) this.#dead.add(this.#before.holder)
      const holder = await this.#holder()
      return holder !== '' && !this.#dead.has(holder)
    })
  }

  async #kill(): Promise<void> {
    this.#dead.add(await this.#holder())
    await this.#other.end('SIGKILL')
    if (this.#isOtherOn) this.#other.start()
    await this.#runner.kill()
    await this.#untilLed()
  }

  /** What no step may change. */
  async #picture(): Promise<unknown> {
    const work = await this.#cluster.list('v1', 'Pod', 'default', 'app=work')
    const [nodes, claims] = await Promise.all([
      this.#cluster.list('v1', 'Node', undefined, 'karpenter.sh/nodepool'),
      this.#cluster.list('karpenter.sh/v1', 'NodeClaim'),
    ])
    const byName = (objects: readonly TestObject[]) =>
      objects
        .map((each) => plain(unchanging(each)))
        .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    return {
      nodes: byName(nodes),
      claims: byName(claims),
      instances: claims.map(({ status }) => status?.providerID ?? '').toSorted(),
      pods: work.map(({ metadata, spec }) => `${metadata?.uid} ${spec?.nodeName}`).toSorted(),
    }
  }

  /** Names and schemas of the definitions that concern nodes. */
  async #crds(): Promise<unknown> {
    const crds = await this.#cluster.list('apiextensions.k8s.io/v1', 'CustomResourceDefinition')
    return crds
      .filter(({ spec }) => /karpenter|autoscaling/.test(String(spec?.['group'])))
      .map(({ metadata, spec }) => [metadata?.name, plain(spec?.['versions'])])
      .toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))
  }

  /** One more pod gets one more node; both go again. */
  async #burst(step: string): Promise<void> {
    for (const count of [workSize + 1, workSize]) {
      await this.#shell(`kubectl scale deployment work --replicas=${count}`, step)
      await this.#untilWorkRuns(count)
    }
  }

  async #untilWorkRuns(count: number): Promise<void> {
    await until(`${count} pods run, each on its own node`, async () => {
      const pods = await this.#cluster.list('v1', 'Pod', 'default', 'app=work')
      const claims = await this.#cluster.list('karpenter.sh/v1', 'NodeClaim')
      const nodes = await this.#cluster.list('v1', 'Node', undefined, 'karpenter.sh/initialized=true')
      return (
        pods.length === count &&
        pods.every(({ status }) => status?.phase === 'Running') &&
        claims.length === count &&
        nodes.length === count
      )
    })
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = clock.monotonic() + limitMs
  while (!(await isSo())) {
    if (clock.monotonic() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await clock.sleep(pollMs)
  }
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
