import type { PageProps } from '../../routes';

export default function NodePage({ params }: PageProps) {
  return <h1>{params['id']}</h1>;
}
