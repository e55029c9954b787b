/** A real control plane with kwok, Tenon's kinds, and a controller process. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { karpenterKinds, kinds, type NodePool, type Pod } from '@tenon/api'
import { createCacheRegistry, createKubeClient, loadKubeConfig, type WatchingKubeClient } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type Clock, SeededRandom, silentLogger } from '@tenon/runtime'
import { startControlPlane } from '../../conformance/src/control-plane.ts'
import { applyCrds } from '../../conformance/src/scheduling-proof/autoscaler.ts'
import { ControllerProcess } from './controller-process.ts'

const readyWithinMs = 60_000
const settleMs = 2000

export interface StandOptions {
  readonly clock: Clock
  readonly pool: NodePool
  /** Options of Node for the controller. */
  readonly nodeOptions?: readonly string[]
  /** Options of the controller. */
  readonly options?: readonly string[]
}

export interface Stand {
  readonly client: WatchingKubeClient
  readonly controller: ControllerProcess
}

/** Runs with a new stand, and removes it afterwards. */
export async function onStand<T>(
  { clock, pool, nodeOptions, options }: StandOptions,
  play: (stand: Stand) => Promise<T>,
): Promise<T> {
  return await onControlPlane(clock, async (client, kubeconfigPath) => {
    const folder = await mkdtemp(join(tmpdir(), 'tenon-bench-control-plane-'))
    await applyCrds(client, clock)
    await client.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
      spec: {},
    })
    await client.create(karpenterKinds.nodePool, pool)
    const controller = await ControllerProcess.start({
      kubeconfigPath,
      log: join(folder, 'controller.log'),
      clock,
      ...(nodeOptions && { nodeOptions }),
      ...(options && { options }),
    })
    try {
      await controller.ready(readyWithinMs)
      await clock.sleep(settleMs)
      const result = await play({ client, controller })
      // After a failure the log says what went wrong.
      await rm(folder, { recursive: true, force: true })
      return result
    } finally {
      await controller.stop()
    }
  })
}

/** Runs with a new control plane with kwok but without a controller, and removes it afterwards. */
export async function onControlPlane<T>(
  clock: Clock,
  play: (client: WatchingKubeClient, kubeconfigPath: string) => Promise<T>,
): Promise<T> {
  const plane = await startControlPlane()
  const config = loadKubeConfig({ env: {}, kubeconfig: plane.kubeconfigPath, clock })
  try {
    const client = createKubeClient({ transport: config.transport, clock, userAgent: 'bench' })
    return await play(client, plane.kubeconfigPath)
  } finally {
    config.close()
    await plane.stop()
  }
}

/** UIDs of the Ready pods, updated until `signal` aborts. */
export async function followReady(
  client: WatchingKubeClient,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const isReady = new Set<string>()
  const random = new SeededRandom('bench')
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random })
  const pods = registry.cache(kinds.pod)
  pods.onChange(({ kind, object }) => {
    const uid = object.metadata.uid ?? ''
    if (kind !== 'deleted' && isPodReady(object)) isReady.add(uid)
    else isReady.delete(uid)
  })
  registry.start(signal)
  await registry.synced(signal)
  return isReady
}

function isPodReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
}
