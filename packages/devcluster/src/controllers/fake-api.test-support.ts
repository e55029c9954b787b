import { apiVersionOf, type KubeObject, type ResourceType, kinds } from '@tenon/api'
import { type Clock, type Random, randomString, rfc3339, uuid } from '@tenon/runtime'
import { ApiError, type LocalApi, type LocalHandler, type ResourceDefinition } from '../contract.ts'
import { selectorMatches } from './objects/selectors.ts'
import { workloads } from './objects/workloads.ts'
import { isDeepStrictEqual } from 'node:util'

const types: ResourceType[] = [...Object.values(kinds), ...Object.values(workloads)]

export function fakeApi(clock: Clock, random: Random): LocalApi {
  const stores = new Map<string, Map<string, KubeObject>>()
  const handlers = new Map<string, Set<LocalHandler<KubeObject>>>()
  let rv = 0
  const id = (t: ResourceType) => `${t.group}/${t.plural}`
  const store = (t: ResourceType) => {
    let s = stores.get(id(t))
    if (!s) stores.set(id(t), (s = new Map()))
    return s
  }
  const key = (ns: string | undefined, name: string) => (ns === undefined ? name : `${ns}/${name}`)
  const fail = (code: number, reason: string) => new ApiError({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message: reason })
  const emit = (t: ResourceType, f: (h: LocalHandler<KubeObject>) => void) => {
    for (const h of handlers.get(id(t)) ?? []) queueMicrotask(() => { if (handlers.get(id(t))?.has(h)) f(h) })
  }
  const put = (t: ResourceType, o: KubeObject, old?: KubeObject) => {
    const meta = { ...o.metadata, resourceVersion: String(++rv) }
    if (old && !isDeepStrictEqual((old as never)['spec'], (o as never)['spec'])) (meta as { generation?: number }).generation = (old.metadata.generation ?? 0) + 1
    const n = { ...o, metadata: meta }
    const k = key(meta.namespace, meta.name)
    if (meta.deletionTimestamp && !(meta.finalizers ?? []).length && (t.plural !== 'pods' || meta.deletionGracePeriodSeconds === 0) && !(n as { spec?: { finalizers?: string[] } }).spec?.finalizers?.length) {
      store(t).delete(k)
      emit(t, (h) => h.deleted?.(n))
      return n
    }
    store(t).set(k, n)
    emit(t, (h) => (old ? h.updated?.(n, old) : h.added?.(n)))
    return n
  }
  const api: LocalApi = {
    get: (t, ns, name) => store(t).get(key(t.namespaced ? ns : undefined, name)) as never,
    list: (t, o = {}) => [...store(t).values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).filter((x) => (o.namespace === undefined || x.metadata.namespace === o.namespace) && (!o.labelSelector || selectorMatches(o.labelSelector, x.metadata.labels))) as never,
    create: (t, o) => {
      const name = o.metadata.name || o.metadata.generateName + randomString(random, 5, 'bcdfghjklmnpqrstvwxz2456789')
      if (store(t).has(key(o.metadata.namespace, name))) throw fail(409, 'AlreadyExists')
      return put(t, { ...o, apiVersion: apiVersionOf(t), kind: t.kind, metadata: { ...o.metadata, name, uid: uuid(random), creationTimestamp: rfc3339(clock.now()), generation: 1 } }) as never
    },
    update: (t, o) => {
      const old = api.get(t, o.metadata.namespace, o.metadata.name)
      if (!old) throw fail(404, 'NotFound')
      return put(t, { ...o, status: (old as never)['status'] } as never, old) as never
    },
    updateStatus: (t, o) => {
      const old = api.get(t, o.metadata.namespace, o.metadata.name)
      if (!old) throw fail(404, 'NotFound')
      return put(t, { ...old, status: (o as never)['status'] } as never, old) as never
    },
    patch: (t, ns, name, p) => {
      const old = api.get(t, ns, name)
      if (!old) throw fail(404, 'NotFound')
      return put(t, { ...old, ...p } as never, old) as never
    },
    delete: (t, ns, name, o = {}) => {
      const old = api.get(t, ns, name)
      if (!old) throw fail(404, 'NotFound')
      const fin = [...(old.metadata.finalizers ?? [])]
      if (o.propagationPolicy === 'Foreground' && !fin.includes('foregroundDeletion')) fin.push('foregroundDeletion')
      if (o.propagationPolicy === 'Orphan' && !fin.includes('orphan')) fin.push('orphan')
      const bound = t.plural === 'pods' && (old as never as { spec: { nodeName?: string } }).spec.nodeName
      const grace = bound ? (o.gracePeriodSeconds ?? 30) : 0
      put(t, { ...old, metadata: { ...old.metadata, finalizers: fin, deletionTimestamp: old.metadata.deletionTimestamp ?? rfc3339(clock.now()), deletionGracePeriodSeconds: grace } }, old)
    },
    bind: (ns, name, node) => {
      const old = api.get(kinds.pod, ns, name)
      if (old) put(kinds.pod, { ...old, spec: { ...old.spec, nodeName: node } } as never, old)
    },
    evict: (ns, name) => api.delete(kinds.pod, ns, name),
    subscribe: (t, h) => {
      let set = handlers.get(id(t))
      if (!set) handlers.set(id(t), (set = new Set()))
      set.add(h as never)
      for (const o of store(t).values()) queueMicrotask(() => h.added?.(o as never))
      return () => void set.delete(h as never)
    },
    definitions: () => types.map((t) => ({ ...t, storage: true, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } }) as never as ResourceDefinition),
  }
  return api
}
