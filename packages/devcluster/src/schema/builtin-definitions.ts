import type { ResourceDefinition, StoredObject } from '../contract.ts'
import { type BuiltinKind, builtinKinds } from './builtin-kinds.ts'
import { defaultsOf } from './defaults/by-kind.ts'
import { selectableFieldsOf } from './selectable-fields.ts'
import { pruneValue } from './shape-pruning.ts'
import { claimModels, modelShape } from './shapes/model-shapes.ts'
import { validatorOf } from './validation/by-kind.ts'

let definitions: readonly ResourceDefinition[] | undefined

/** Every built-in kind of the embedded cluster. Created once; the objects are shared. */
export function builtinDefinitions(): readonly ResourceDefinition[] {
  if (definitions === undefined) {
    for (const kind of builtinKinds) claimModels(kind.model, kind.group, kind.version)
    definitions = builtinKinds.map(definitionOf)
  }
  return definitions
}

/** Kinds with `/scale`; all have their replica count at the same path. */
const replicaScale = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
}

function definitionOf(kind: BuiltinKind): ResourceDefinition {
  const schema = modelShape(kind.model)
  return {
    group: kind.group,
    version: kind.version,
    kind: kind.kind,
    listKind: `${kind.kind}List`,
    plural: kind.plural,
    singular: kind.kind.toLowerCase(),
    shortNames: kind.shortNames,
    categories: kind.categories,
    namespaced: kind.namespaced,
    subresources: kind.subresources,
    storage: true,
    columns: kind.columns,
    ...(kind.subresources.includes('scale') ? { scale: replicaScale } : {}),
    hasGeneration: kind.hasGeneration,
    schema,
    applyDefaults: defaultsOf(kind, schema),
    prune: (object, old) => {
      const unknownFields: string[] = []
      return { object: pruneValue(object, schema, '', unknownFields, old) as StoredObject, unknownFields }
    },
    validate: validatorOf(kind, schema),
    selectableFields: selectableFieldsOf(kind.group, kind.kind),
  }
}
