/** The clients under test: kubectl, and informer and plain watch of the stock JavaScript client. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubeConfig, type KubernetesObject, makeInformer, Watch } from '@kubernetes/client-node'
import type { SoakKind } from './churn.ts'
import type { LossyTrack, SeenEvent, Track, Verdict } from './ledger.ts'
import type { AnyObject, Send } from './requests.ts'

export interface Watcher {
  stop(): Promise<void>
}

function event(type: SeenEvent['type'], { metadata }: AnyObject): SeenEvent {
  return { type, name: metadata.name, uid: metadata.uid, resourceVersion: metadata.resourceVersion }
}

const isSoak = (name: string) => name.startsWith('soak-')

/** `kubectl get KIND -w`, one line per event. */
export function kubectlWatch(kubeconfig: string, kind: SoakKind, track: Track, verdict: Verdict): Watcher {
  const columns = ['{.type}', '{.object.metadata.name}', '{.object.metadata.uid}']
  const output = `jsonpath=${columns.join('{" "}')}{" "}{.object.metadata.resourceVersion}{"\\n"}`
  const child = spawn(
    'kubectl',
    ['--kubeconfig', kubeconfig, 'get', kind.name, '-w', '--output-watch-events', '-o', output],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let isStopping = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [type = '', name = '', uid = '', resourceVersion = ''] = line.split(' ')
    if (isSoak(name)) track.saw({ type: type as SeenEvent['type'], name, uid, resourceVersion })
  })
  child.stderr.on('data', (chunk: Buffer) => verdict.add(`${track.name}: kubectl says ${chunk.toString()}`))
  const ended = new Promise<void>((resolve) => {
    child.on('exit', (code) => {
      if (!isStopping) verdict.add(`${track.name}: kubectl ended with ${code}`)
      resolve()
    })
  })
  return {
    stop: async () => {
      isStopping = true
      child.kill()
      await ended
    },
  }
}

type Listed = { metadata: object; items: (AnyObject & KubernetesObject)[] }

function informerOf(config: KubeConfig, kind: SoakKind, list: () => Promise<Listed>) {
  return makeInformer<KubernetesObject>(config, kind.collection, list)
}

async function listOf(send: Send, kind: SoakKind): Promise<Listed> {
  return (await send('GET', kind.collection)).body as Listed
}

/** The stock client's informer on a stable connection. */
export async function informerWatch(
  config: KubeConfig,
  send: Send,
  kind: SoakKind,
  track: Track,
  verdict: Verdict,
): Promise<Watcher> {
  let isStopping = false
  const informer = informerOf(config, kind, () => listOf(send, kind))
  const note = (type: SeenEvent['type']) => (object: KubernetesObject) => {
    const seen = event(type, object as AnyObject)
    if (isSoak(seen.name)) track.saw(seen)
  }
  informer.on('add', note('ADDED'))
  informer.on('update', note('MODIFIED'))
  informer.on('delete', note('DELETED'))
  informer.on('error', (error) => {
    if (!isStopping) verdict.add(`${track.name}: informer failed: ${String(error)}`)
  })
  await informer.start()
  return {
    stop: async () => {
      isStopping = true
      await informer.stop()
    },
  }
}

/** A single watch with bookmarks: the order of the whole stream counts too. */
export async function plainWatch(
  config: KubeConfig,
  send: Send,
  kind: SoakKind,
  track: Track,
  verdict: Verdict,
): Promise<Watcher> {
  const { metadata } = await listOf(send, kind)
  let last = Number((metadata as { resourceVersion: string }).resourceVersion)
  let isStopping = false
  const watch = new Watch(config)
  const onEvent = (phase: string, object: AnyObject) => {
    const version = Number(object.metadata.resourceVersion)
    if (phase === 'BOOKMARK' ? version < last : version <= last)
      verdict.add(`${track.name}: ${phase} at ${version} after ${last}`)
    last = version
    if (phase !== 'BOOKMARK' && isSoak(object.metadata.name))
      track.saw(event(phase as SeenEvent['type'], object))
  }
  const query = { allowWatchBookmarks: true, resourceVersion: String(last), timeoutSeconds: 86_400 }
  const request = await watch.watch(kind.collection, query, onEvent, (error: unknown) => {
    if (!isStopping) verdict.add(`${track.name}: watch ended: ${String(error)}`)
  })
  return {
    stop: () => {
      isStopping = true
      request.abort()
      return Promise.resolve()
    },
  }
}

const restartPauseMs = 500

/** An informer behind a connection that breaks for longer than the server's history. */
export interface LossyWatcher extends Watcher {
  /** `name uid resourceVersion` of everything it holds, sorted. */
  state(): readonly string[]
}

export async function lossyInformer(
  config: KubeConfig,
  send: Send,
  kind: SoakKind,
  track: LossyTrack,
): Promise<LossyWatcher> {
  let isStopping = false
  const informer = informerOf(config, kind, async () => {
    track.lists++
    return await listOf(send, kind)
  })
  const note = (type: SeenEvent['type']) => (object: KubernetesObject) => {
    const seen = event(type, object as AnyObject)
    if (isSoak(seen.name)) track.saw(seen)
  }
  informer.on('add', note('ADDED'))
  informer.on('update', note('MODIFIED'))
  informer.on('delete', note('DELETED'))
  informer.on('error', () => {
    void sleep(restartPauseMs).then(() => (isStopping ? undefined : informer.start()))
  })
  await informer.start()
  return {
    stop: async () => {
      isStopping = true
      await informer.stop()
    },
    state: () => stateOf(informer.list() as readonly AnyObject[]),
  }
}

/** `name uid resourceVersion` of the soak's objects, sorted. */
function stateOf(objects: readonly AnyObject[]): readonly string[] {
  return objects
    .filter(({ metadata }) => isSoak(metadata.name))
    .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`)
    .toSorted()
}

/** The server's state. */
export async function serverState(send: Send, kind: SoakKind): Promise<readonly string[]> {
  return stateOf((await listOf(send, kind)).items)
}
