/** Writers that create, change and delete objects over HTTPS, each with its own names. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '@tenon/runtime'
import type { Ledger, Verdict } from './ledger.ts'
import type { AnyObject, Reply, Send } from './requests.ts'

/** A kind under churn. */
export interface SoakKind {
  readonly name: string
  readonly collection: string
  readonly object: (name: string, step: number) => object
}

const metadata = (name: string, step: number) => ({ name, annotations: { step: String(step) } })

export const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.soak.example.com' },
  spec: {
    group: 'soak.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
          },
        },
      },
    ],
  },
}

export const soakKinds: readonly SoakKind[] = [
  {
    name: 'pods',
    collection: '/api/v1/namespaces/default/pods',
    // No scheduler has this name, so only the soak writes these pods.
    object: (name, step) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: metadata(name, step),
      spec: { schedulerName: 'soak', containers: [{ name: 'app', image: 'pause' }] },
    }),
  },
  {
    name: 'configmaps',
    collection: '/api/v1/namespaces/default/configmaps',
    object: (name, step) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: metadata(name, step),
      data: { step: String(step) },
    }),
  },
  {
    name: 'widgets',
    collection: '/apis/soak.example.com/v1/namespaces/default/widgets',
    object: (name, step) => ({
      apiVersion: 'soak.example.com/v1',
      kind: 'Widget',
      metadata: metadata(name, step),
      spec: { size: step },
    }),
  },
]

const namesPerWriter = 25

export interface WriterPlan {
  readonly kind: SoakKind
  readonly ledger: Ledger
  readonly verdict: Verdict
  readonly send: Send
  readonly random: Random
  readonly id: string
  readonly writesPerSecond: number
  readonly endMs: number
}

/** One writer, with one request at a time. */
export class Writer {
  readonly #plan: WriterPlan
  readonly #alive = new Map<string, AnyObject>()
  writes = 0
  conflicts = 0

  constructor(plan: WriterPlan) {
    this.#plan = plan
  }

  async run(): Promise<void> {
    const { endMs, writesPerSecond } = this.#plan
    const startMs = performance.now()
    for (let step = 0; performance.now() < endMs; step++) {
      await this.#write(step)
      const aheadMs = (step * 1000) / writesPerSecond - (performance.now() - startMs)
      if (aheadMs > 0) await sleep(aheadMs)
    }
  }

  async #write(step: number): Promise<void> {
    const { random, kind, send, id } = this.#plan
    const name = `soak-${id}-${random.uint32() % namesPerWriter}`
    const before = this.#alive.get(name)
    if (before === undefined) {
      this.#note(await send('POST', kind.collection, kind.object(name, step)), 201)
      return
    }
    const path = `${kind.collection}/${name}`
    const annotations = { step: String(step) }
    switch (random.uint32() % 8) {
      case 0:
      case 1:
        await this.#delete(path, before)
        return
      case 2:
      case 3:
        this.#note(await send('PUT', path, changed(before, step)), 200)
        return
      case 4:
        this.#note(
          await send('PATCH', path, { metadata: { annotations } }, 'application/merge-patch+json'),
          200,
        )
        return
      case 5: {
        const patch = [{ op: 'replace', path: '/metadata/annotations/step', value: String(step) }]
        this.#note(await send('PATCH', path, patch, 'application/json-patch+json'), 200)
        return
      }
      case 6: {
        const { apiVersion, kind: kindName } = kind.object(name, step) as AnyObject
        const applied = { apiVersion, kind: kindName, metadata: { name, annotations } }
        const query = '?fieldManager=soak&force=true'
        this.#note(await send('PATCH', path + query, applied, 'application/apply-patch+yaml'), 200)
        return
      }
      default:
        await this.#conflict(path, before, step)
    }
  }

  /** A write that must be rejected, and so must never be seen. */
  async #conflict(path: string, before: AnyObject, step: number): Promise<void> {
    const stale = changed(before, step)
    const version = String(Number(before.metadata.resourceVersion) - 1)
    const { status } = await this.#plan.send('PUT', path, {
      ...stale,
      metadata: { ...stale.metadata, resourceVersion: version },
    })
    this.conflicts++
    if (status !== 409) this.#plan.verdict.add(`stale PUT ${path}: ${status} instead of 409`)
  }

  async #delete(path: string, before: AnyObject): Promise<void> {
    const { status } = await this.#plan.send('DELETE', path, { gracePeriodSeconds: 0 })
    this.writes++
    if (status !== 200) this.#plan.verdict.add(`DELETE ${path}: ${status}`)
    this.#alive.delete(before.metadata.name)
    this.#plan.ledger.removed(before.metadata.uid, performance.now())
  }

  #note({ status, body }: Reply, expected: number): void {
    this.writes++
    if (status !== expected) {
      this.#plan.verdict.add(`write answered ${status}: ${JSON.stringify(body).slice(0, 300)}`)
      return
    }
    const object = body as AnyObject
    this.#alive.set(object.metadata.name, object)
    this.#plan.ledger.wrote(object.metadata.uid, object.metadata.resourceVersion)
  }
}

function changed(object: AnyObject, step: number): AnyObject {
  const annotations = { ...object.metadata.annotations, step: String(step) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}
