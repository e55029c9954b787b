import { pathOf, setOwn, ownValue } from '@tenon/api'
import type { ResourceDefinition } from '../../contract.ts'
import { modelShape } from '../shapes/model-shapes.ts'
import { type Dialect, kindModel, type SchemaCollection } from './schemas.ts'

type Json = Record<string, unknown>

interface Parameter {
  readonly name: string
  readonly type: 'string' | 'boolean' | 'integer'
}

const text = (name: string): Parameter => ({ name, type: 'string' })

const writeParameters = [text('dryRun'), text('fieldManager'), text('fieldValidation')]
const patchParameters: readonly Parameter[] = [...writeParameters, { name: 'force', type: 'boolean' }]
const listParameters: readonly Parameter[] = [
  { name: 'allowWatchBookmarks', type: 'boolean' },
  text('continue'),
  text('fieldSelector'),
  text('labelSelector'),
  { name: 'limit', type: 'integer' },
  text('resourceVersion'),
  text('resourceVersionMatch'),
  { name: 'sendInitialEvents', type: 'boolean' },
  { name: 'timeoutSeconds', type: 'integer' },
  { name: 'watch', type: 'boolean' },
]
const deleteParameters: readonly Parameter[] = [
  text('dryRun'),
  { name: 'gracePeriodSeconds', type: 'integer' },
  { name: 'orphanDependents', type: 'boolean' },
  text('propagationPolicy'),
]

const customPatchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
]

/** Clients choose a patch type by these: custom resources have no strategic merge patch. */
const builtinPatchTypes = [...customPatchTypes, 'application/strategic-merge-patch+json']

interface OperationFacts {
  readonly verb: string
  readonly action: string
  readonly id: string
  readonly parameters: readonly Parameter[]
  readonly body?: readonly string[]
  /** Model of request and response body. */
  readonly model: Json
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
}

/** Writes operations in one of the two dialects. */
class PathWriter {
  readonly paths: Json = {}
  private readonly dialect: Dialect

  constructor(dialect: Dialect) {
    this.dialect = dialect
  }

  add(path: string, operations: readonly OperationFacts[]): void {
    const item: Json = {}
    for (const operation of operations) setOwn(item, operation.verb, this.operation(operation))
    const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
    item['parameters'] = [...names.map((name) => this.pathParameter(name)), this.parameter(text('pretty'))]
    setOwn(this.paths, path, item)
  }

  private pathParameter(name: string): Json {
    const shape =
      this.dialect === 'v3'
        ? { schema: { type: 'string', uniqueItems: true } }
        : { type: 'string', uniqueItems: true }
    return { name, in: 'path', required: true, ...shape }
  }

  private parameter({ name, type }: Parameter): Json {
    const shape =
      this.dialect === 'v3' ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true }
    return { name, in: 'query', ...shape }
  }

  private operation(facts: OperationFacts): Json {
    const { dialect } = this
    const produces = ['application/json', 'application/yaml']
    const answer =
      dialect === 'v3'
        ? {
            description: 'OK',
            content: Object.fromEntries(produces.map((type) => [type, { schema: facts.model }])),
          }
        : { description: 'OK', schema: facts.model }
    const parameters = facts.parameters.map((parameter) => this.parameter(parameter))
    const body = facts.body ?? []
    const bodySchema = facts.verb === 'patch' ? { type: 'object' } : facts.model
    return {
      operationId: facts.id,
      ...(dialect === 'v2' ? { consumes: body.length > 0 ? body : ['*/*'], produces } : {}),
      parameters:
        dialect === 'v2' && body.length > 0
          ? [{ name: 'body', in: 'body', required: true, schema: bodySchema }, ...parameters]
          : parameters,
      ...(dialect === 'v3' && body.length > 0
        ? {
            requestBody: {
              required: true,
              content: Object.fromEntries(body.map((type) => [type, { schema: bodySchema }])),
            },
          }
        : {}),
      responses: { '200': answer, '401': { description: 'Unauthorized' } },
      'x-kubernetes-action': facts.action,
      'x-kubernetes-group-version-kind': facts.kind,
    }
  }
}

const anyBody = ['*/*']

function operationsFor(definition: ResourceDefinition, collection: SchemaCollection, scope: string) {
  const { group, version, kind, schema } = definition
  const name = kindModel(definition)
  const model = collection.reference(name, schema)
  const list = collection.reference(`${name.slice(0, -kind.length)}${definition.listKind}`, schema)
  const status = collection.reference('io.k8s.apimachinery.pkg.apis.meta.v1.Status', modelShape('V1Status'))
  const gvk = { group, version, kind }
  const id = (verb: string, what = kind): string => `${verb}${title(group)}${title(version)}${scope}${what}`
  const reading = { kind: gvk, model, parameters: [] }
  return {
    list: {
      ...reading,
      verb: 'get',
      action: 'list',
      id: id('list'),
      parameters: listParameters,
      model: list,
    },
    create: {
      ...reading,
      verb: 'post',
      action: 'post',
      id: id('create'),
      parameters: writeParameters,
      body: anyBody,
    },
    deleteAll: {
      ...reading,
      verb: 'delete',
      action: 'deletecollection',
      id: id('deleteCollection'),
      parameters: [...listParameters, ...deleteParameters],
      model: status,
    },
    read: { ...reading, verb: 'get', action: 'get', id: id('read') },
    replace: {
      ...reading,
      verb: 'put',
      action: 'put',
      id: id('replace'),
      parameters: writeParameters,
      body: anyBody,
    },
    patch: {
      ...reading,
      verb: 'patch',
      action: 'patch',
      id: id('patch'),
      parameters: patchParameters,
      body: schema.model === undefined ? customPatchTypes : builtinPatchTypes,
    },
    remove: {
      ...reading,
      verb: 'delete',
      action: 'delete',
      id: id('delete'),
      parameters: deleteParameters,
      model: status,
    },
  } as const satisfies Record<string, OperationFacts>
}

function title(name: string): string {
  const first = name.split('.')[0] ?? ''
  return first.charAt(0).toUpperCase() + first.slice(1)
}

/** Kinds that can only be created. */
const createOnly = new Set(['Binding'])

/** The paths of one kind, with the operations that clients read. */
export function pathsOf(
  definition: ResourceDefinition,
  collection: SchemaCollection,
  dialect: Dialect,
): Json {
  const writer = new PathWriter(dialect)
  const scope = definition.namespaced ? 'Namespaced' : ''
  const operations = operationsFor(definition, collection, scope)
  const namespace = definition.namespaced ? '{namespace}' : undefined
  const root = pathOf(definition, namespace)
  if (createOnly.has(definition.kind)) {
    writer.add(root, [operations.create])
    return writer.paths
  }
  if (definition.namespaced) {
    writer.add(pathOf(definition), [{ ...operations.list, id: `${operations.list.id}ForAllNamespaces` }])
  }
  writer.add(root, [operations.list, operations.create, operations.deleteAll])
  writer.add(`${root}/{name}`, [operations.read, operations.replace, operations.patch, operations.remove])
  for (const subresource of definition.subresources)
    addSubresource(writer, definition, collection, subresource)
  return writer.paths
}

/** Subresources that are read, replaced and patched as part of the object. */
const objectSubresources = new Set(['status', 'ephemeralcontainers', 'resize', 'approval'])

/** Subresources that accept an object of another kind. */
const postedSubresources: Readonly<
  Record<string, { model: string; name: string; group: string; kind: string }>
> = {
  binding: { model: 'V1Binding', name: 'io.k8s.api.core.v1.Binding', group: '', kind: 'Binding' },
  eviction: { model: 'V1Eviction', name: 'io.k8s.api.policy.v1.Eviction', group: 'policy', kind: 'Eviction' },
  token: {
    model: 'AuthenticationV1TokenRequest',
    name: 'io.k8s.api.authentication.v1.TokenRequest',
    group: 'authentication.k8s.io',
    kind: 'TokenRequest',
  },
}

function addSubresource(
  writer: PathWriter,
  definition: ResourceDefinition,
  collection: SchemaCollection,
  subresource: string,
): void {
  const namespace = definition.namespaced ? '{namespace}' : undefined
  const path = `${pathOf(definition, namespace)}/{name}/${subresource}`
  const operations = operationsFor(definition, collection, definition.namespaced ? 'Namespaced' : '')
  const suffix = title(subresource)
  const named = <T extends OperationFacts>(facts: T): T => ({ ...facts, id: `${facts.id}${suffix}` })
  if (objectSubresources.has(subresource)) {
    writer.add(path, [named(operations.read), named(operations.replace), named(operations.patch)])
    return
  }
  if (subresource === 'scale') {
    const scale = {
      model: collection.reference('io.k8s.api.autoscaling.v1.Scale', modelShape('V1Scale')),
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    }
    writer.add(
      path,
      [operations.read, operations.replace, operations.patch].map((facts) => ({ ...named(facts), ...scale })),
    )
    return
  }
  const posted = ownValue(postedSubresources, subresource)
  if (posted === undefined) return
  const model = collection.reference(posted.name, modelShape(posted.model))
  const kind = { group: posted.group, version: 'v1', kind: posted.kind }
  writer.add(path, [{ ...named(operations.create), model, kind }])
}
