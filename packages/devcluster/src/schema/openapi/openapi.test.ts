import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtinDefinitions } from '../builtin-definitions.ts'
import { compileCrd } from '../crd/compile-crd.ts'
import { openApiV2, openApiV3 } from './documents.ts'

type Json = Record<string, unknown>

const definitions = builtinDefinitions()

function schemasOf(document: object): Record<string, Json> {
  const { components, definitions: models } = document as {
    components?: { schemas: object }
    definitions?: object
  }
  return (components?.schemas ?? models) as Record<string, Json>
}

test('every reference leads to a model with content', () => {
  const documents = [
    openApiV2(definitions),
    ...definitions.map(({ group, version }) => openApiV3(definitions, group, version)),
  ]
  for (const document of documents) {
    const schemas = schemasOf(document)
    for (const [, name = ''] of JSON.stringify(document).matchAll(
      /"\$ref":"#\/(?:components\/schemas|definitions)\/([^"]+)"/g,
    )) {
      assert.ok(Object.keys(schemas[name] ?? {}).length > 0, name)
    }
  }
})

test('a PATCH says that it takes dryRun and fieldValidation, and for which kind', () => {
  const { paths } = openApiV3(definitions, 'apps', 'v1') as { paths: Record<string, Record<string, Json>> }
  const patch = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']?.['patch']
  assert.ok(patch)
  const names = new Set((patch['parameters'] as { name: string }[]).map(({ name }) => name))
  assert.ok(names.has('dryRun') && names.has('fieldValidation'))
  assert.deepEqual(patch['x-kubernetes-group-version-kind'], {
    group: 'apps',
    version: 'v1',
    kind: 'Deployment',
  })
  assert.equal(patch['x-kubernetes-action'], 'patch')
})

test('lists carry their merge keys', () => {
  const spec = schemasOf(openApiV3(definitions, '', 'v1'))['io.k8s.api.core.v1.PodSpec'] as {
    properties: Record<string, Json>
  }
  const { items: _items, ...containers } = spec.properties['containers'] as Json
  assert.deepEqual(containers, {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    'x-kubernetes-patch-merge-key': 'name',
    'x-kubernetes-patch-strategy': 'merge',
  })
})

test('a custom resource is described and takes no strategic merge patch', () => {
  const crd = compileCrd({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'pools.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { plural: 'pools', kind: 'Pool' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  description: 'What is wanted.',
                  properties: { size: { type: 'integer' } },
                },
              },
            },
          },
        },
      ],
    },
  })
  const document = openApiV3(crd.definitions ?? [], 'example.com', 'v1')
  const model = schemasOf(document)['com.example.v1.Pool'] as { properties: Record<string, Json> }
  assert.equal(model.properties['spec']?.['description'], 'What is wanted.')
  assert.equal(JSON.stringify(document).includes('strategic-merge-patch'), false)
})

test('a model of OpenAPI 2 names no fields where any are kept, as clients would refuse the others', () => {
  const open = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
  const crd = compileCrd({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'pools.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { plural: 'pools', kind: 'Pool' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                open: { ...open, 'x-kubernetes-preserve-unknown-fields': true },
                any: { 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
        },
      ],
    },
  })
  const v2 = schemasOf(openApiV2(crd.definitions ?? []))['com.example.v1.Pool'] as Json
  const { open: openV2, any } = v2['properties'] as Json
  assert.deepEqual(openV2, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true })
  assert.deepEqual(any, { 'x-kubernetes-preserve-unknown-fields': true })
  const v3 = schemasOf(openApiV3(crd.definitions ?? [], 'example.com', 'v1'))['com.example.v1.Pool'] as Json
  assert.deepEqual((v3['properties'] as Json)['open'], {
    ...open,
    'x-kubernetes-preserve-unknown-fields': true,
  })
})
