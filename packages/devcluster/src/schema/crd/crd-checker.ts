/** Checks custom resources as the API server does, without one. */
import type { FieldError, StoredObject } from '../../contract.ts'
import { fieldErrorsMessage } from '../field-errors.ts'
import { compileCrd, type CustomDefinition } from './compile-crd.ts'

/** What a creation of the object would come to. */
export interface CheckedCustomResource {
  /** The object as it would be stored, if `errors` is empty. */
  readonly object: StoredObject
  /**
   * Why it would be refused: schema, rules (CEL), metadata. Where the API server leaves all rules out
   * because of other errors, with an error without field, those of parts without errors are here as well.
   */
  readonly errors: readonly FieldError[]
  /** Paths of fields that kubectl refuses, and that other clients lose. */
  readonly unknownFields: readonly string[]
}

/** Checks objects of the kinds it was made for. */
export interface CrdChecker {
  /** Undefined when no definition serves this version of this kind. */
  check(object: StoredObject): CheckedCustomResource | undefined
}

/**
 * A checker for the kinds of these CustomResourceDefinitions.
 * @throws Error naming what is wrong with a definition.
 */
export function createCrdChecker(crds: readonly object[]): CrdChecker {
  const definitions = new Map<string, CustomDefinition>()
  for (const crd of crds as readonly StoredObject[]) {
    const { definitions: served, errors } = compileCrd(crd)
    if (errors !== undefined)
      throw new Error(fieldErrorsMessage('CustomResourceDefinition', crd.metadata.name, errors))
    for (const each of served) definitions.set(`${each.group}/${each.version} ${each.kind}`, each)
  }
  return {
    check: (object) => {
      const definition = definitions.get(`${object.apiVersion} ${object.kind}`)
      return definition && checkCreation(definition, object)
    },
  }
}

/** The same steps, in the same order, as a POST takes. */
function checkCreation(definition: CustomDefinition, given: StoredObject): CheckedCustomResource {
  const { object: known, unknownFields } = definition.prune(given)
  const { status: _status, ...bare } = known
  const object = definition.applyDefaults(definition.subresources.includes('status') ? bare : known)
  const errors = definition.validate(object, undefined)
  const isComplete = errors.every(({ field }) => field !== '')
  const others = isComplete ? [] : unaffectedRuleErrors(definition, object, errors)
  return { object, errors: [...errors, ...others], unknownFields }
}

/** A rule sees what is below its field, and nothing else. */
function unaffectedRuleErrors(
  definition: CustomDefinition,
  object: StoredObject,
  errors: readonly FieldError[],
): readonly FieldError[] {
  const isRelated = (field: string) =>
    errors.some((error) => isWithin(error.field, field) || isWithin(field, error.field))
  return definition.ruleErrors(object).filter(({ field }) => !isRelated(field))
}

function isWithin(field: string, parent: string): boolean {
  return (
    parent !== '' && (field === parent || field.startsWith(`${parent}.`) || field.startsWith(`${parent}[`))
  )
}
