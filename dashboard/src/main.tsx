/** The first thing that runs: styles, theme, routes, and the app into the page. */
import './styles/tokens.css';
import './styles/base.css';
import './styles/ui.css';
import './styles/pages.css';
import { render } from 'preact';
import { App } from './app';
import { startConnection } from './lib/connection';
import { startRouter } from './lib/router';
import { startTheme } from './lib/theme';

startTheme();
startRouter();
startConnection();

const root = document.getElementById('app');
if (root) render(<App />, root);
