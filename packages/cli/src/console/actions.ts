/** Actions of the page with --allow-actions: each does what its command does, and no more. */
import { isMirrorPod, isDaemonPod } from '@tenon/operator'
import { karpenterKinds, kinds, type NodePool, type Pod } from '@tenon/api'
import type { ActionPort, ActionRequest } from '@tenon/console'
import { isKubeError, mergePatchOf } from '@tenon/kube'
import { runPause, runResume } from '../commands/pause.ts'
import type { Io } from '../io.ts'
import { type ClusterConnection, onCluster } from '../kubectl/connection.ts'
import type { ClusterFlags } from '../kubectl/flags.ts'
import { readTypedManifests } from './manifests.ts'

/** How long evictions that a PodDisruptionBudget refuses are tried again. */
const drainMs = 60_000
const drainRetryMs = 2000

/** @param flags of the cluster that the page shows. */
export function consoleActions(io: Io, flags: ClusterFlags): ActionPort {
  return {
    commandOf: (request) => commandOf(request, flags),
    run: async (request, signal) => await run(io, flags, request, signal),
  }
}

function commandOf(request: ActionRequest, { context, kubeconfig }: ClusterFlags): string {
  const where = [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig ${quoted(kubeconfig)}`]),
    ...(context === undefined ? [] : [`--context ${quoted(context)}`]),
  ]
  const command = (...parts: readonly string[]) => [...parts, ...where].join(' ')
  switch (request.kind) {
    case 'cordon':
    case 'uncordon':
      return command('kubectl', request.kind, request.node)
    case 'drain':
      return command('kubectl drain', request.node, '--ignore-daemonsets --delete-emptydir-data --force')
    case 'deleteNodeClaim':
      return command('kubectl delete nodeclaim', request.nodeClaim, '--wait=false')
    case 'pause':
    case 'resume':
      return command(
        'tenon',
        request.kind,
        ...(request.nodePool === undefined ? [] : [`nodepool/${request.nodePool}`]),
      )
    case 'apply':
      return `${command('kubectl apply -f -')} <<'END'\n${request.manifest.trimEnd()}\nEND`
  }
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

async function run(
  io: Io,
  flags: ClusterFlags,
  request: ActionRequest,
  signal: AbortSignal,
): Promise<string> {
  switch (request.kind) {
    case 'pause':
    case 'resume': {
      let told = ''
      const note = (text: string) => {
        told += text
      }
      const targets = request.nodePool === undefined ? [] : [`nodepool/${request.nodePool}`]
      const own = { ...io, out: note, err: note }
      const all = { ...flags, dryRun: 'none' as const }
      await (request.kind === 'pause' ? runPause(own, targets, all) : runResume(own, targets, all))
      return told.trim()
    }
    case 'apply':
      return await apply(io, flags, request.manifest)
    case 'cordon':
    case 'uncordon':
    case 'drain':
    case 'deleteNodeClaim':
      return await onCluster(io, flags, async (connection) => await onNode(connection, request, signal))
  }
}

type NodeRequest = Extract<
  ActionRequest,
  { readonly kind: 'cordon' | 'uncordon' | 'drain' | 'deleteNodeClaim' }
>

async function onNode(
  connection: ClusterConnection,
  request: NodeRequest,
  signal: AbortSignal,
): Promise<string> {
  const { client } = connection
  if (request.kind === 'deleteNodeClaim') {
    await client.delete(karpenterKinds.nodeClaim, { name: request.nodeClaim })
    return `nodeclaim.karpenter.sh "${request.nodeClaim}" deleted`
  }
  const { kind, node: name } = request
  await client.patch(kinds.node, { name }, { spec: { unschedulable: kind !== 'uncordon' } })
  if (kind !== 'drain') return `node/${name} ${kind}ed`
  const left = await drained(connection, name, signal)
  if (left.length > 0)
    throw new Error(`node/${name} cordoned; these pods may not be evicted now: ${left.join(', ')}`)
  return `node/${name} drained`
}

/** Evicts what kubectl drain evicts. @returns the pods that may not be evicted. */
async function drained(
  { client, clock }: ClusterConnection,
  node: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const endMs = clock.monotonic() + drainMs
  const pods = await client.list(kinds.pod, { fieldSelector: `spec.nodeName=${node}` })
  let left: readonly Pod[] = pods.filter(
    (pod) => !isDaemonPod(pod) && !isMirrorPod(pod) && pod.metadata.deletionTimestamp === undefined,
  )
  for (;;) {
    const refused: Pod[] = []
    for (const pod of left) {
      const { name, namespace = 'default', uid = '' } = pod.metadata
      try {
        await client.evict({ namespace, name }, uid)
      } catch (error) {
        if (isKubeError(error, 'notFound')) continue
        if (!isKubeError(error, 'tooManyRequests')) throw error
        refused.push(pod)
      }
    }
    left = refused
    if (left.length === 0 || clock.monotonic() >= endMs)
      return left.map(({ metadata }) => `${metadata.namespace ?? 'default'}/${metadata.name}`)
    await clock.sleep(drainRetryMs, signal)
  }
}

/** NodePools alone: nothing else is edited on the page. */
async function apply(io: Io, flags: ClusterFlags, manifest: string): Promise<string> {
  const { objects, problems } = await readTypedManifests(io, manifest)
  const wrong = problems.find(({ severity }) => severity === 'error')
  if (wrong !== undefined) throw new Error(`${wrong.line}:${wrong.column}: ${wrong.message}`)
  const foreign = objects.find(({ kind }) => kind !== karpenterKinds.nodePool.kind)
  if (foreign !== undefined) throw new Error(`${foreign.kind} ${foreign.metadata.name} is no NodePool`)
  return await onCluster(io, flags, async ({ client }) => {
    const done: string[] = []
    for (const object of objects) {
      const { name } = object.metadata
      const { spec } = object as NodePool
      const known = await client.get(karpenterKinds.nodePool, { name })
      const patch = known && mergePatchOf(known.spec, spec)
      if (known === undefined) await client.create(karpenterKinds.nodePool, object as NodePool)
      else if (patch !== undefined) await client.patch(karpenterKinds.nodePool, { name }, { spec: patch })
      const what = known === undefined ? 'created' : patch === undefined ? 'unchanged' : 'configured'
      done.push(`nodepool.karpenter.sh/${name} ${what}`)
    }
    return done.join('\n')
  })
}
